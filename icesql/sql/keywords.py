"""Words of the default dialect by their places: DuckDB's own, and those that begin statements."""

from __future__ import annotations

from typing import Final

# No part of an expression, whatever is around them.
_EVERYWHERE: Final = """
all analyse analyze and anti any array as asc asof asymmetric at authorization binary both by case
cast check collate collation column concurrently constraint create cross default deferrable desc
describe distinct do else end except false fetch for foreign freeze from full glob group having
ilike in initially inner intersect into is isnull join lambda lateral leading left like limit
natural not notnull null offset on only or order outer overlaps pivot pivot_longer pivot_wider
placing positional primary qualify references returning right select semi show similar some
summarize symmetric table tablesample then to trailing true union unique unpack unpivot using
variadic verbose when where window with
"""
_CLOCKS: Final = "current_date current_time current_timestamp localtime localtimestamp"
# Accepted as an alias only after AS in a select list.
_AFTER_AS: Final = """
centuries century day days decade decades escape exclude filter hour hours ignore microsecond
microseconds millennia millennium millisecond milliseconds minute minutes month months over
precision quarter quarters rename replace respect second seconds varying week weeks within without
year years
"""
# These usually begin or join something, though they can be names.
_SELDOM_NAMES: Final = """
alter apply attach begin between call commit copy cube delete detach div drop escape execute exists
explain filter grant insert interval merge over partition pragma prepare range recursive regexp
replace reset revoke rlike rollback rollup row rows set settings temp temporary truncate unnest
update use vacuum values xor
"""


def word_set(*texts: str) -> frozenset[str]:
    """Return the words of some texts, which blanks separate."""
    return frozenset(" ".join(texts).split())


def word_list(text: str) -> tuple[str, ...]:
    """Return the words of a text, which blanks separate, in their order."""
    return tuple(text.split())


def word_map(text: str) -> dict[str, str]:
    """Return the rows of a table, ``key = value`` in each line, as a mapping."""
    return dict(line.split(" = ") for line in text.strip().splitlines())


# DuckDB's reserved keywords, which cannot be names.
RESERVED: Final = word_set(_EVERYWHERE, "columns generated map struct try_cast tuple")
# Read as a column name only in double quotes.
NO_COLUMN: Final = word_set(_EVERYWHERE, _CLOCKS)
NO_ALIAS: Final = word_set(_EVERYWHERE, _AFTER_AS)
KEYWORDS: Final = RESERVED | word_set(_SELDOM_NAMES, _CLOCKS)

# Words that begin statements, and hints for statements that icesql refuses.
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
