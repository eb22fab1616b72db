"""Commits files and metadata changes to tables: snapshots, conflict checks, retries, clean-up.

In: a table of a catalog, and data and delete files or updates of its metadata. Out: CommitResult.
May import: scan, catalog, storage, iceberg, context, config, errors.

The table below gives the outcome of a change that was sent, by the catalog's response and the state
of the table in a later look, and the files that are deleted. "unchanged" is a table whose head is
the base of the change. "moved on" is a table whose head descends from that base, with all snapshots
in between, but without the change's own snapshot. An unchanged or missing table proves nothing: a
request may arrive late.

| catalog | sent | came back | then seen | known | deleted |
|---|---|---|---|---|---|
| REST | one table, CREATE, several | 200 | - | applied | nothing |
| REST | one table, CREATE, several | 200 | no answer | unknown | nothing |
| REST | one table, CREATE, several | 400, 403, 422 | - | not applied | its files |
| REST | one table, CREATE, several | 429 | - | conflict | its files |
| REST | one table, CREATE, several | 409 | its snapshot | applied | nothing |
| REST | one table, several | 409 | unchanged, moved on | conflict | its files |
| REST | CREATE | 409 | another table | conflict | its files |
| REST | CREATE | 409 | no table | unknown | nothing |
| REST | several | 409, 504 | some of them changed | unknown | nothing |
| REST | one table, CREATE, several | 409 | no answer | unknown | nothing |
| REST | one table, CREATE, several | 502, 503, none | its snapshot | applied | nothing |
| REST | one table, several | 502, 503, none | unchanged | unknown | nothing |
| REST | one table, several | 502, 503, none | moved on | conflict | its files |
| REST | CREATE | 502, 503, none | another table | conflict | its files |
| REST | CREATE | 502, 503, none | no table | unknown | nothing |
| REST | one table, CREATE, several | 502, 503, none | no answer | unknown | nothing |
| REST | one table, several | 503 then 200 | unchanged | applied | nothing |
| REST | one table, several | 503 then 409, 503 then 403 | unchanged | unknown | nothing |
| REST | CREATE | 503 then 200 | no table | applied | nothing |
| REST | CREATE | 503 then 409, 503 then 403 | no table | unknown | nothing |
| SQLite, SQL | one table, CREATE | committed | - | applied | nothing |
| SQLite, SQL | one table, CREATE | another row | - | conflict | its files |
| SQLite | one table, CREATE | locked | - | conflict | its files |
| SQLite, SQL | one table, CREATE | COMMIT refused | - | conflict | its files |
| SQLite, SQL | one table, CREATE | COMMIT failed | its snapshot | applied | nothing |
| SQLite, SQL | one table | COMMIT failed | unchanged, no answer | unknown | nothing |
| SQLite, SQL | one table | COMMIT failed | moved on | conflict | its files |
| SQLite, SQL | CREATE | COMMIT failed | no table | unknown | nothing |
| SQLite, SQL | CREATE | COMMIT failed | another table | conflict | its files |
| SQLite, SQL | one table, CREATE | Ctrl-C | - | unknown | nothing |
| Glue | one table | committed | - | applied | nothing |
| Glue | one table | another version | its snapshot | applied | nothing |
| Glue | one table | another version | unchanged, moved on | conflict | its files |
| Glue | one table | none | its snapshot | applied | nothing |
| Glue | one table | none | unchanged, no answer | unknown | nothing |
| Glue | one table | none | moved on | conflict | its files |
| folder | one table, CREATE | linked | - | applied | nothing |
| folder | one table, CREATE | name taken | - | conflict | its files |
| folder | one table, CREATE | no links | - | not applied | its files |
| folder | one table, CREATE | linked | its snapshot | applied | nothing |
| folder | one table | linked | moved on | conflict | its files |
| folder | one table | linked | no answer | unknown | nothing |
| folder | CREATE | linked | another table | conflict | its files |
| folder | one table, CREATE | none | its snapshot | applied | nothing |
| folder | one table | none | unchanged | unknown | nothing |
| folder | CREATE | none | no table | unknown | nothing |
| folder | one table, CREATE | Ctrl-C | - | unknown | nothing |

408, 460, 499 and all other statuses from 500 on except 501 and 505 are treated as 502. A conflict
of one table is retried on the table's new state, as often as the table's properties allow. A new
table in Glue, and changes of several tables except in REST catalogs, are refused before anything is
sent. If a commit was certainly applied, but its table cannot be loaded afterwards, it is reported
as one of unknown outcome, too; its error says that it was applied.
"""
