"""Find the needs of a table in its metadata: the doctor shows them, maintenance acts on them.

In: a table, and a policy. Out: findings with the statements that fix them, the calls that keep a
table healthy, and their reports. ``needs`` chooses actions, ``upkeep`` carries them out, table by
table. The caller runs the statements: this package does not use sessions.
"""
