"""The needs of a table, found in its metadata: the doctor shows them, maintenance meets them.

In: a table, and a policy for what is to be done. Out: findings with the statements that mend them,
the calls that keep a table healthy, and their reports. ``needs`` chooses, ``of_table`` carries out,
``lake`` goes from table to table. Statements are run by the caller: nothing here knows a session.
"""
