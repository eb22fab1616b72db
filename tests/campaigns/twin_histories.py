"""Histories of one writer: icesql leaves the same rows as a model.

    python tests/campaigns twin_histories [--histories 200] [--first 0] [--length 30]
        [--kinds sqlite,folder,rest] [--lanes 2] [--out F] [--only N …]

A history is a table of any version, with columns of any type and any partitioning, or one that
another writer has left in files of three formats with every kind of delete; and statements of all
kinds: rows, transactions, columns, partitions, branches, tags, history, properties, maintenance.
After each one the table, its branches and each snapshot have the model's rows, by both readers, and
so has a condition, with pruning and without. At the end PyIceberg reads the table, too, and the
totals of the summary are counted. Java reads the tables of some in ``java/histories.sql``.
"""

from __future__ import annotations

from functools import partial

from tests.campaigns.histories.alone import Alone
from tests.campaigns.histories.command import one, run

main = partial(
    run, partial(one, Alone), histories=200, length=30, kinds="sqlite,folder,rest"
)  # fmt: skip
