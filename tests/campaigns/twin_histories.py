"""Histories of one writer by a model; with Java icesql and Spark SQL take turns at one table.

    python tests/campaigns twin_histories [--histories 200] [--first 0] [--length 30]
        [--kinds sqlite,folder,rest] [--lanes 2] [--out F] [--only N …]
        [--java PYTHON --jars A.jar:B.jar]

A history is a table of any version, of columns of any type, partitioned anyhow, or one that another
writer has left in files of three formats with every kind of delete; and statements of all kinds:
rows, transactions, columns, partitions, branches, tags, history, properties, maintenance. After each
one the table, its branches and each snapshot have the model's rows, by both readers, and so has a
condition, with pruning and without. With ``--java`` (a Python that has PySpark 4.1 and pyarrow, and
jars of Iceberg and of SQLite) statements are those that both take, in Spark's dialect, each by one of
the two, and Java reads the table now and then. At the end PyIceberg reads it, too, and the totals of
the summary are counted.
"""

from __future__ import annotations

from functools import partial

from tests.campaigns.histories.command import one, run

history = partial(one, "alone:Alone")
main = partial(run, history, histories=200, length=30, kinds="sqlite,folder,rest")
