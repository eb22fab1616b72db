"""The judges of foreign suites, on a tiny suite: they see what is the same and what is not."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path

import pyarrow as pa
import pytest

import icesql
from tests.campaigns import foreign_duckdb, foreign_sqlite
from tests.campaigns.foreign.answers import Answer, answer_of, differ
from tests.campaigns.foreign.findings import Finding, judge_files, read, report
from tests.campaigns.foreign.spark_golden import as_spark_prints, read_golden
from tests.campaigns.foreign.sqllogictest import read_records
from tests.campaigns.foreign.verdicts import Failure, judge

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
    kept: list[Finding] = []
    foreign_duckdb.judge_file(suite, suite.parents[2], kept.append)
    # The five columns, the view and the count, the column that is not there, the random numbers.
    assert [each.verdict for each in kept] == [
        *["same"] * 6, "both", "same", "random", "(column left out)"
    ]  # fmt: skip
    assert kept[0].place == "test/sql/tiny.test:13"


def test_queries_are_drawn_and_setup_is_always_run(suite: Path) -> None:
    kept: list[Finding] = []
    foreign_sqlite.judge_file(suite, suite.parents[2], each=1, seed=1, keep=kept.append)
    assert len(kept) == 1


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_run_goes_on_where_it_was_ended_and_survives_its_children(tmp_path: Path) -> None:
    kept, judged = tmp_path / "kept.jsonl", tmp_path / "judged"

    def judge_one(file: Path, keep: object) -> None:
        with judged.open("a") as out:
            out.write(f"{file.name}\n")
        if file.name == "bad":
            raise SystemExit(3)
        keep(Finding(str(file), "same"))

    judge_files([Path("good"), Path("bad")], judge_one, kept, workers=1)
    judge_files([Path("good"), Path("bad"), Path("new")], judge_one, kept, workers=1)
    assert judged.read_text().split() == ["good", "bad", "new"]
    assert [each.verdict for each in read(kept)] == ["same", "died", "same"]
    assert "2 answered by the reference: 100.00 % the same" in report(read(kept), ["died"], 9)


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
    expected = answer_of(pa.table({"i": [1, 2]}))
    answer = Failure(found) if isinstance(found, Exception) else answer_of(pa.table(found))
    assert judge(lambda: expected, lambda: answer, [lambda: expected]).word == word


def test_an_answer_that_depends_on_the_order_of_rows_is_open() -> None:
    one, two, three = (answer_of(pa.table({"i": [n]})) for n in (1, 2, 3))
    assert judge(lambda: one, lambda: two, [lambda: one, lambda: three]).word == "open"


def test_values_of_one_type_are_equal_in_every_unit_and_others_differ() -> None:
    moment = datetime.datetime(2026, 1, 31, 12)
    alike = [
        pa.array([moment, None], pa.timestamp(unit, zone))
        for unit, zone in (("s", None), ("us", None), ("ns", None))
    ]
    answers = [answer_of(pa.table({"x": each})) for each in alike]
    assert all(differ(answers[0], each) is None for each in answers)
    for other in (
        pa.array([moment, None], pa.timestamp("us", "UTC")),
        pa.array([moment.date(), None], pa.date32()),
        pa.array([str(moment), None]),
    ):
        assert differ(answers[0], answer_of(pa.table({"x": other}))) == "rows"


def test_nested_values_are_compared_with_the_names_of_their_fields() -> None:
    def answer(name: str, value: object) -> object:
        kind = pa.struct([(name, pa.list_(pa.map_(pa.string(), pa.float64())))])
        return answer_of(pa.table({"x": pa.array([{name: [[("k", value)], None]}, None], kind)}))

    assert differ(answer("a", 0.1 + 0.2), answer("a", 0.3)) is None
    assert differ(answer("a", float("nan")), answer("a", float("nan"))) is None
    assert differ(answer("a", 0.25), answer("a", 0.5)) == "rows"
    assert differ(answer("a", 0.25), answer("b", 0.25)) == "rows"


GOLDEN = """-- Automatically generated
-- !query
SELECT a, f(x) `a:b`, m FROM t
-- !query schema
struct<a:decimal(3,1),a:b:double,m:map<string,array<double>>,ts:timestamp>
-- !query output
1.5\t1.0E10\t{"k":[0.5,null]}\t2026-01-31 04:00:00.5
NULL\tNaN\tNULL\tNULL


-- !query
SELECT nothing
-- !query schema
struct<>
-- !query output
org.apache.spark.sql.AnalysisException
{
"""


def test_golden_rows_are_what_spark_prints_of_the_same_values(tmp_path: Path) -> None:
    (tmp_path / "x.sql.out").write_text(GOLDEN)
    first, second = read_golden(tmp_path / "x.sql.out")
    assert (first.line, second.line) == (3, 12)
    assert first.names == ("a", "a:b", "m", "ts")
    moment = datetime.datetime(2026, 1, 31, 12, 0, 0, 500_000, datetime.UTC)
    found = pa.table(
        {
            "a": pa.array([decimal.Decimal("1.5"), None]),
            "a:b": [1e10, float("nan")],
            "m": pa.array([{"k": [0.5, None]}, None], pa.map_(pa.string(), pa.list_(pa.float64()))),
            "ts": pa.array([moment, None], pa.timestamp("us", "UTC")),
        }
    )
    expected = first.answer()
    assert isinstance(expected, Answer)
    assert differ(expected, as_spark_prints(answer_of(found), first.kinds)) is None
    other = found.set_column(0, "a", pa.array([decimal.Decimal("1.6"), None]))
    assert differ(expected, as_spark_prints(answer_of(other), first.kinds)) == "rows"
    assert isinstance(second.answer(), Failure)
