"""The words that begin statements, and the hints for statements that icesql refuses."""

from __future__ import annotations

from typing import Final

from icesql.sql.keywords import word_list, word_set

QUERY_WORDS: Final = ("SELECT", "WITH", "FROM", "VALUES", "(")
PIVOT_WORDS: Final = ("PIVOT", "UNPIVOT", "PIVOT_WIDER", "PIVOT_LONGER")
# Words that begin the query of an INSERT.
ROWS_WORDS: Final = (*QUERY_WORDS, "TABLE")
# Other forms of queries.
TABLE_WORDS: Final = ("SUMMARIZE", "TABLE")
COMMAND_WORDS: Final = word_list(
    "EXPLAIN SHOW DESCRIBE DESC SET RESET USE COPY PREPARE EXECUTE DEALLOCATE"
)
# Some statements that begin with these change tables; see ``sql.writes``.
WRITE_WORDS: Final = word_set(
    "CREATE DROP ALTER COMMENT INSERT COPY DELETE UPDATE TRUNCATE CALL MERGE OPTIMIZE VACUUM "
    "ANALYZE REPLACE ROLLBACK BEGIN START COMMIT RESTORE UNDROP"
)
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
