"""No regular expression of the package takes more than linear time, whatever it is given."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest

import icesql
from icesql.engine.duckdb import errors
from icesql.engine.duckdb.relations import grouping
from icesql.sql import lexer
from icesql.sql.grammar import columns
from icesql.sql.parser import literal_list
from tests.rows import rows_of
from tests.security.patterns import patterns, slow_texts
from tests.sessions import fetched
from tests.tables import read_table

SHARDS: Final = 4
# Patterns that are made of local values. Constants are in them where a sample is here.
OF_LOCALS: Final[dict[tuple[str, str], tuple[str, ...]]] = (
    {
        (module, source): (sample,) if sample else ()
        for module, source, sample in read_table(__file__, "patterns_of_locals.tsv")
    }
    | {
        ("icesql.query.dialects.spark.calls", f"constants[{key}]"): tuple(
            dict(columns("spark_casts.txt", "constants")).values()
        )
        for key in ("'timestamp_ntz'", "to.kind")
    }
    | {
        ("icesql.sql.lexer", "pattern"): tuple(
            lexer._piece(dialect, is_ascii).pattern
            for dialect in ("duckdb", "snowflake", "spark")
            for is_ascii in (True, False)
        ),
        ("icesql.engine.duckdb.relations.grouping", "_STORED_AS[type(node)]"): tuple(
            rf"\A(?:{each})\Z"
            for each in grouping._STORED_AS.values()  # by fullmatch
        ),
        ("icesql.engine.duckdb.relations.grouping", "_SAME.get(type(kind), '.*')"): tuple(
            rf"\A(?:{each})\Z" for each in grouping._SAME.values()
        ),
        ("icesql.engine.duckdb.errors", "message"): tuple(
            message for message, *_ in errors._MISTAKES
        ),
        ("icesql.sql.parser.literal_list", "_lists(text)"): tuple(
            map(literal_list._lists, ("x", "é"))
        ),
        ("icesql.sql.parser.literal_list", "_items(text)"): tuple(
            map(literal_list._items, ("x", "é"))
        ),
    }
)
# By their functions, where the text of the argument is long: of names, quotes and words of ours.
_MODULES_WITH_LOCALS: Final = frozenset(
    {"icesql.installation", "icesql.manual.lookup", "icesql.sql.spark_sql", "icesql.health.policy"}
)


def wanted() -> list[tuple[re.Pattern[Any], set[str]]]:
    found = dict(patterns()[0])
    for text in (each for samples in OF_LOCALS.values() for each in samples):
        found.setdefault(re.compile(text), {"search"})
    return sorted(found.items(), key=lambda each: repr(each[0].pattern))


@pytest.mark.parametrize("shard", range(SHARDS))
def test_every_pattern_takes_linear_time(shard: int) -> None:
    slow = {
        pattern.pattern: texts
        for pattern, methods in wanted()[shard::SHARDS]
        if (texts := list(slow_texts(pattern, methods)))
    }
    assert slow == {}


def test_every_pattern_is_known() -> None:
    found, unknown = patterns()
    assert len(found) > 250
    assert {each for each in unknown if each[0] not in _MODULES_WITH_LOCALS} <= set(OF_LOCALS)


@rows_of(__file__, "slow_patterns.tsv", "pattern", "method")
def test_a_slow_pattern_is_found(pattern: str, method: str) -> None:
    assert list(slow_texts(re.compile(pattern), {method}))


HOSTILE: Final = [
    lambda n: "SELECT /*+ " + "INDEX   " * n + "x */ a FROM s.t",
    lambda n: "SELECT * FROM s.t " + "/**/" * n + " ORDER BY a FOR SYSTEM_TIME AS OF '2030-01-01'",
    lambda n: f"SELECT CAST('{'x://' * n}' AS INT)",
    lambda n: f'SELECT * FROM s."{"x://" * n}"',
    lambda n: f"SELECT * FROM s.t FOR SYSTEM_TIME AS OF '{'1' * n}'",
    lambda n: "SELECT $a$" + "".join(f" $a{i}$" for i in range(n)),
    lambda n: "SELECT /*" * n,
    lambda n: f"SELECT INTERVAL '{'1' * n}'",
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("dialect", ["duckdb", "spark"])
def test_a_hostile_text_takes_linear_time(text: Any, dialect: str, tmp_path: Path) -> None:
    with icesql.connect(warehouse=tmp_path) as opened:
        opened.execute("CREATE SCHEMA s")
        opened.execute("CREATE TABLE s.t (a BIGINT)")
    with icesql.connect(warehouse=tmp_path, service=True, dialect=dialect) as opened:

        def of(count: int) -> float:
            start = time.process_time()
            with suppress(icesql.Error):
                fetched(opened, text(count))
            return time.process_time() - start

        of(10)
        least = min(of(500) for _ in range(2))
        assert of(4_000) < 40 * max(least, 0.1)


@pytest.mark.parametrize(
    "pattern", ["(||){40}c", "((a|b|)|(|))" * 40 + "c", "(" * 3_000 + ")" * 3_000, "a{99999999999}"]
)
def test_a_users_pattern_is_not_run_here(pattern: str, tmp_path: Path) -> None:
    with icesql.connect(warehouse=tmp_path, dialect="spark", service=True) as opened:
        for call in ("split('a', '{}')", "regexp_replace('a', '{}', '')", "regexp_count('a', '{}')",
                     "regexp_extract('a', '{}', 0)"):  # fmt: skip
            start = time.process_time()
            with pytest.raises(icesql.Error):
                fetched(opened, f"SELECT {call.format(pattern)}, missing")
            assert time.process_time() - start < 10
