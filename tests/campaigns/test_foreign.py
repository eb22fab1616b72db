"""The judges of foreign suites, on a tiny suite: they see what is the same and what is not."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import icesql
from tests.campaigns import foreign_duckdb, foreign_spark
from tests.campaigns.foreign.answers import Answer, Failure, answer_of, differ, judge, plain_duckdb
from tests.campaigns.foreign.findings import Finding, judge_files, read, report
from tests.campaigns.foreign.sqllogictest import read_records

SUITE = """
# group: [tiny]

statement ok
CREATE TABLE t AS SELECT i::TINYINT AS i, 'x' || i AS name, [{'a': i}, NULL] AS nested, uuid() AS u,
  DATE '2026-01-01' + i::INTEGER AS day FROM range(5) r(i);

statement ok
CREATE VIEW v AS SELECT i + 1 AS j, INTERVAL 1 DAY AS lost FROM t

foreach column i name nested u day

query I
SELECT ${column} FROM t WHERE i > 2 OR ${column} IS NULL ORDER BY i
----
is not read

endloop

query I rowsort
SELECT sum(j) FROM v
----
15

statement error
SELECT nothing FROM t
----
not found

statement ok
INSERT INTO t (i) VALUES (NULL)

query II
SELECT count(*), max(i) FROM T; SELECT random() FROM t

skipif duckdb
query I
SELECT 'skipped'

require a_thing_that_is_not_here

query I
SELECT 'not reached'
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    file = tmp_path / "test" / "sql" / "tiny.test"
    file.parent.mkdir(parents=True)
    file.write_text(SUITE)
    return file


def test_every_select_of_a_suite_is_judged(suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(suite.parent)
    kept = [*foreign_duckdb.judged(suite, suite.parents[2])]
    # The five columns, the view and the count, the column that is not there, the random numbers.
    assert [each.verdict for each in kept] == [
        *["same"] * 6, "both", "same", "random", "(column left out)"
    ]  # fmt: skip
    assert kept[0].place == "test/sql/tiny.test:13"


def test_queries_are_drawn_and_setup_is_always_run(
    suite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(suite.parent)
    (one, _) = foreign_duckdb.judged(suite, suite.parents[2], each=1)
    assert one.verdict in ("same", "both", "random")


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_run_goes_on_where_it_was_ended_and_survives_its_children(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept, judged = tmp_path / "kept.jsonl", tmp_path / "judged"

    def judge_one(file: Path) -> Iterator[Finding]:
        with judged.open("a") as out:
            out.write(f"{file.name}\n")
        yield Finding(str(file), "same")
        if file.name == "bad":
            os._exit(3)

    judge_files([Path("good"), Path("bad")], judge_one, kept, workers=1)
    judge_files([Path("good"), Path("bad"), Path("new")], judge_one, kept, workers=1)
    assert judged.read_text().split() == ["good", "bad", "new"]
    assert [each.verdict for each in read(kept)] == ["same", "same", "died", "same"]
    assert report(kept) == 1
    assert "3 answered by the reference: 100.00 % the same" in capsys.readouterr().out


def test_loops_fill_in_their_variable(suite: Path) -> None:
    records = list(read_records(suite, "sqlite"))
    assert len(records) == 12
    assert records[3].sql.startswith("SELECT name FROM t WHERE i > 2 OR name")
    assert [record.fails for record in records].count(True) == 1


@pytest.mark.parametrize(
    ("found", "word"),
    [
        ({"i": [1, 2]}, "same"),
        ({"i": [2, 1]}, "ties"),
        ({"I": [1, 2]}, "names"),
        ({"i": [1, 3]}, "WRONG"),
        ({"i": [1]}, "WRONG"),
        ({"i": [1, 2], "j": [1, 2]}, "WRONG"),
        ({"i": ["1", "2"]}, "WRONG"),
        ({"i": [1.0, 2.0]}, "WRONG"),
        ({"i": [True, None]}, "WRONG"),
        (icesql.errors.UnsupportedSqlError("PIVOT"), "refused"),
        (icesql.ProgrammingError("no"), "error"),
        (ValueError("no"), "FOREIGN"),
    ],
)
def test_verdicts(found: dict[str, list[object]] | Exception, word: str) -> None:
    expected = answer({"i": [1, 2]})
    other = Failure(found) if isinstance(found, Exception) else answer(found)
    assert judge(lambda: expected, lambda: other, [lambda: expected]).word == word


def answer(columns: dict[str, object]) -> Answer:
    return answer_of(plain_duckdb(), pa.table(columns))


def test_an_answer_that_depends_on_the_order_of_rows_is_open() -> None:
    one, two, three = (answer({"i": [n]}) for n in (1, 2, 3))
    assert judge(lambda: one, lambda: two, [lambda: one, lambda: three]).word == "open"


def test_values_of_one_type_are_equal_in_every_unit_and_others_differ() -> None:
    moment = datetime.datetime(2026, 1, 31, 12)
    first, *alike = [
        answer({"x": pa.array([moment, None], pa.timestamp(unit))}) for unit in ("s", "us", "ns")
    ]
    assert all(differ(first, each) is None for each in alike)
    for other in (
        pa.array([moment, None], pa.timestamp("us", "UTC")),
        pa.array([moment.date(), None], pa.date32()),
        pa.array([str(moment), None]),
    ):
        assert differ(first, answer({"x": other})) == "rows"


def test_nested_values_are_compared_with_the_names_of_their_fields() -> None:
    def nested(name: str, value: object) -> Answer:
        kind = pa.struct([(name, pa.list_(pa.map_(pa.string(), pa.float64())))])
        return answer({"x": pa.array([{name: [[("k", value)], None]}, None], kind)})

    assert differ(nested("a", 0.1 + 0.2), nested("a", 0.3)) is None
    assert differ(nested("a", float("nan")), nested("a", float("nan"))) is None
    assert differ(nested("a", 0.25), nested("a", 0.5)) == "rows"
    assert differ(nested("a", 0.25), nested("b", 0.25)) == "rows"


def test_numbers_are_equal_without_their_zeros() -> None:
    from decimal import Decimal

    one, other = (answer({"x": [Decimal(each)]}) for each in ("100.50", "100.5"))
    assert differ(one, other) is None
    assert differ(answer({"x": [Decimal("10.0")]}), answer({"x": [10]})) is None
    assert differ(answer({"x": [Decimal("10.0")]}), answer({"x": [1]})) == "rows"


def test_a_golden_file_has_statements_at_lines(tmp_path: Path) -> None:
    blocks = ("SELECT a", "CREATE TABLE t\n(a INT)", "SELECT b")
    texts = (f"-- !query\n{each}\n-- !query schema\nstruct<>\n\n" for each in blocks)
    (tmp_path / "x.sql.out").write_text("-- Generated\n" + "".join(texts))
    found = foreign_spark.read_statements(tmp_path / "x.sql.out")
    assert found == [(3, blocks[0]), (8, blocks[1]), (14, blocks[2])]
    assert [foreign_spark.is_query(sql) for _, sql in found] == [True, False, True]
