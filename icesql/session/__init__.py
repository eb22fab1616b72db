"""One connection's session: statement → bound query → scan plans → result, or a change of tables.

In: text and its parameters, settings, and a way to open the catalog. Out: an Outcome for each
statement. Imports ``modify`` and every room below it; the doors above import ``session.session``.
"""
