"""The words that begin statements, and the hints for statements that icesql refuses."""

from __future__ import annotations

from typing import Final

QUERY_WORDS: Final = ("SELECT", "WITH", "FROM", "VALUES", "(")
PIVOT_WORDS: Final = ("PIVOT", "UNPIVOT", "PIVOT_WIDER", "PIVOT_LONGER")
# Other forms of queries.
TABLE_WORDS: Final = ("SUMMARIZE", "TABLE")
COMMAND_WORDS: Final = (
    "EXPLAIN", "SHOW", "DESCRIBE", "DESC", "SET", "RESET", "USE", "COPY", "PREPARE", "EXECUTE",
    "DEALLOCATE",
)  # fmt: skip
# Some statements that begin with these change tables; see ``sql.writes``.
WRITE_WORDS: Final = (
    "CREATE", "DROP", "ALTER", "COMMENT", "INSERT", "COPY", "DELETE", "UPDATE", "TRUNCATE",
    "CALL", "MERGE", "OPTIMIZE", "VACUUM", "ANALYZE", "REPLACE", "ROLLBACK", "BEGIN", "START",
    "COMMIT", "RESTORE", "UNDROP",
)  # fmt: skip
# Some statements that begin with these may follow EXPLAIN.
EXPLAINED_WRITES: Final = ("CALL", "OPTIMIZE", "VACUUM", "ROLLBACK", "RESTORE", "ALTER")
CHANGES_ROWS: Final = ("INSERT", "DELETE", "UPDATE", "MERGE")
EXPLAIN_HINT: Final = (
    "EXPLAIN takes a query, CALL or a change WITH SCHEMA EVOLUTION: EXPLAIN SELECT … with the same "
    "condition tells what is read"
)
FILES_HINT: Final = (
    "connect(files='folder') and --files allow statements, not views, to read files of this machine"
)
FORMATS_HINT: Final = (
    "its name says no format: write read_csv('…'), read_json('…') or read_parquet('…'), "
    "or the name of a table"
)
COPY_HINT: Final = (
    "results leave through --output, cursor.arrow() or cursor.df(); connect(copy_to='folder') and "
    "--copy-to allow COPY (query) TO 'file'"
)

READ_ONLY: Final = (
    "of the statements that change tables there are CREATE TABLE, INSERT, COPY … FROM, "
    "DELETE, UPDATE, MERGE, TRUNCATE, ALTER TABLE, DROP TABLE, OPTIMIZE and CALL"
)
_RESULTS: Final = "results leave through --output, cursor.arrow() or cursor.df()"
_CATALOGS: Final = "catalogs are opened with connect(…) or --catalog, --warehouse, --uri"

REFUSED_STATEMENTS: Final[dict[str, str]] = {
    **dict.fromkeys(
        ("INSERT", "UPDATE", "DELETE", "MERGE", "TRUNCATE", "CREATE", "ALTER"), READ_ONLY
    ),
    **dict.fromkeys(("REPLACE", "UPSERT"), "MERGE INTO t USING … changes rows and adds others"),
    **dict.fromkeys(
        ("DROP", "COMMENT", "RENAME", "OPTIMIZE", "VACUUM"),
        READ_ONLY,
    ),
    **dict.fromkeys(("EXPORT", "UNLOAD", "PUT", "GET"), _RESULTS),
    **dict.fromkeys(("ATTACH", "DETACH", "CONNECT"), _CATALOGS),
    **dict.fromkeys(("INSTALL", "UNINSTALL"), "extensions are not loaded"),
    "LOAD": "extensions are not loaded; COPY t FROM 'file' loads rows",
    **dict.fromkeys(("BEGIN", "START", "COMMIT", "ROLLBACK", "SAVEPOINT"), READ_ONLY),
    **dict.fromkeys(("DECLARE",), "use ? parameters"),
    "PRAGMA": "settings are changed with SET name = value",
    "IMPORT": READ_ONLY,
    "ANALYZE": "ANALYZE t counts the distinct values of its columns; EXPLAIN ANALYZE SELECT … "
    "measures a query",
    "CHECKPOINT": READ_ONLY,
    "PIVOT": "in DuckDB's spelling it runs; else write sum(x) FILTER (WHERE …) for each column",
    "UNPIVOT": "in DuckDB's spelling it runs; else write a UNION ALL of the columns",
    "KILL": "",
    "REFRESH": "each statement reads a table as it is now",
    **dict.fromkeys(("CACHE", "UNCACHE"), "CREATE TEMP TABLE t AS SELECT … keeps rows"),
    **dict.fromkeys(("GRANT", "REVOKE"), "rights are the catalog's and the store's own"),
    "LIST": "",
    "MSCK": "a table knows its partitions; CALL system.add_files('t', '`parquet`.`folder`') adds "
    "files to it",
}

# Alternatives for objects that CREATE does not support, by the word for the object.
CREATED: Final = {
    "INDEX": "a Bloom filter of new files: ALTER TABLE t SET TBLPROPERTIES "
    "('write.parquet.bloom-filter-enabled.column.x' = 'true'); WRITE ORDERED BY sorts them",
    "MATERIALIZED": "CREATE TABLE t AS SELECT … keeps the rows of a query",
    "GLOBAL": "write CREATE TEMP VIEW v AS SELECT …, which lives as long as the connection",
    "VIEW": "write CREATE TEMP VIEW v AS SELECT …, which lives as long as the connection",
    "TEMP": "write CREATE TEMP TABLE t AS SELECT …, which lives as long as the connection",
    "TEMPORARY": "write CREATE TEMP TABLE t AS SELECT …, which lives as long as the connection",
}
