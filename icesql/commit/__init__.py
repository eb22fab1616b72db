"""Commit files and changes to tables: snapshots, conflict checks, retries, clean-up.

In: a table of a catalog, and data and delete files or updates of its metadata. Out: CommitResult.
May import: scan, catalog, storage, iceberg, context, config, errors.

What is known of a change that was sent, and what of it may be deleted. "as it stood" is a table
whose head is the one that the change was made of, "moved on" one whose head was made of that and
which has all snapshots that came since, but not this one. Neither a table that is as it stood nor
one that is not there proves anything: a request may arrive late.

| catalog | sent | came back | then seen | known | deleted |
|---|---|---|---|---|---|
| REST | one table, CREATE, several | 200 | - | applied | nothing |
| REST | one table, CREATE, several | 200 | no answer | unknown | nothing |
| REST | one table, CREATE, several | 400, 403, 422 | - | not applied | its files |
| REST | one table, CREATE, several | 429 | - | conflict | its files |
| REST | one table, CREATE, several | 409 | its snapshot | applied | nothing |
| REST | one table, several | 409 | as it stood, moved on | conflict | its files |
| REST | CREATE | 409 | another table | conflict | its files |
| REST | CREATE | 409 | no table | unknown | nothing |
| REST | several | 409, 504 | some of them changed | unknown | nothing |
| REST | one table, CREATE, several | 409 | no answer | unknown | nothing |
| REST | one table, CREATE, several | 502, 503, none | its snapshot | applied | nothing |
| REST | one table, several | 502, 503, none | as it stood | unknown | nothing |
| REST | one table, several | 502, 503, none | moved on | conflict | its files |
| REST | CREATE | 502, 503, none | another table | conflict | its files |
| REST | CREATE | 502, 503, none | no table | unknown | nothing |
| REST | one table, CREATE, several | 502, 503, none | no answer | unknown | nothing |
| REST | one table, several | 503 then 200 | as it stood | applied | nothing |
| REST | one table, several | 503 then 409, 503 then 403 | as it stood | unknown | nothing |
| REST | CREATE | 503 then 200 | no table | applied | nothing |
| REST | CREATE | 503 then 409, 503 then 403 | no table | unknown | nothing |
| SQLite, SQL | one table, CREATE | committed | - | applied | nothing |
| SQLite, SQL | one table, CREATE | another row | - | conflict | its files |
| SQLite | one table, CREATE | locked | - | conflict | its files |
| SQLite, SQL | one table, CREATE | COMMIT refused | - | conflict | its files |
| SQLite, SQL | one table, CREATE | COMMIT failed | its snapshot | applied | nothing |
| SQLite, SQL | one table | COMMIT failed | as it stood, no answer | unknown | nothing |
| SQLite, SQL | one table | COMMIT failed | moved on | conflict | its files |
| SQLite, SQL | CREATE | COMMIT failed | no table | unknown | nothing |
| SQLite, SQL | CREATE | COMMIT failed | another table | conflict | its files |
| SQLite, SQL | one table, CREATE | Ctrl-C | - | unknown | nothing |
| Glue | one table | committed | - | applied | nothing |
| Glue | one table | another version | its snapshot | applied | nothing |
| Glue | one table | another version | as it stood, moved on | conflict | its files |
| Glue | one table | none | its snapshot | applied | nothing |
| Glue | one table | none | as it stood, no answer | unknown | nothing |
| Glue | one table | none | moved on | conflict | its files |
| folder | one table, CREATE | linked | - | applied | nothing |
| folder | one table, CREATE | name taken | - | conflict | its files |
| folder | one table, CREATE | no links | - | not applied | its files |
| folder | one table, CREATE | linked | its snapshot | applied | nothing |
| folder | one table | linked | moved on | conflict | its files |
| folder | one table | linked | no answer | unknown | nothing |
| folder | CREATE | linked | another table | conflict | its files |
| folder | one table, CREATE | none | its snapshot | applied | nothing |
| folder | one table | none | as it stood | unknown | nothing |
| folder | CREATE | none | no table | unknown | nothing |
| folder | one table, CREATE | Ctrl-C | - | unknown | nothing |

408, 460, 499 and all other answers from 500 on but 501 and 505 mean what 502 does. A conflict of
one table is tried again, of what is there then, as often as the table wants it. A new table in
Glue, and changes of several tables anywhere but in REST catalogs, are refused before anything is
sent. A commit that is applied for certain, and whose table cannot be looked at then, is told as one
of unknown outcome, too: its error says that it was applied.
"""
