"""Two writers of one table: another commits inside of each statement of icesql.

    python tests/campaigns two_writers [--histories 2000] [--first 0] [--length 6]
        [--kinds folder,sqlite,rest] [--lanes 2] [--out F] [--only N …]

A history is a table (of two over REST) with random properties, and statements of icesql: rows,
transactions, maintenance, branches, columns. Inside of each, at random moments (planning, files
written, before an attempt, between an attempt and the look at its outcome, clean-up …), another
writer commits: icesql in another connection, equality and position deletes or vectors as Flink
writes them, and PyIceberg (no folders, no version 3; only appends if there are equality deletes,
since it would rewrite the rows that they delete). REST is behind a gateway that loses, repeats and
delays requests.

A model applies the commits in their order, by what the statement's isolation allows (the
table in the manual's chapter Write). A statement that is planned again must match the rows
after the commits before it. After each commit and each step the table has the model's rows, and in
version 3 row ids that are unique and stable; at the end so has every retained snapshot, also
by PyIceberg. A refused statement has changed nothing. One seed gives one history. Exits with
1 if anything was wrong.
"""

from __future__ import annotations

from functools import partial

from tests.campaigns.histories.beside import TwoWriters
from tests.campaigns.histories.command import one, run

history = partial(one, TwoWriters)
main = partial(run, history, histories=2000, length=6)
