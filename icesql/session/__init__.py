"""One connection's session: statement → bound query → scan plans → result, or a change of tables.

In: text and its parameters, settings, and a function that opens the catalog. Out: an Outcome for
each statement. Imports ``modify`` and every folder below it; the folders above import
``session.session``.
"""
