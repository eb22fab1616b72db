"""The judges of foreign suites, on a tiny suite: they detect equal and different answers."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import icesql
from tests.campaigns import foreign_duckdb, foreign_spark
from tests.campaigns.foreign.answers import Answer, Failure, answer_of, judge, plain_duckdb
from tests.campaigns.foreign.findings import Finding, judge_files, read, report
from tests.campaigns.foreign.sqllogictest import read_records
from tests.tables import read_table


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    file = tmp_path / "test" / "sql" / "tiny.test"
    file.parent.mkdir(parents=True)
    return Path(shutil.copy(Path(__file__).with_name("foreign") / "tiny.test", file))


def test_every_select_of_a_suite_is_judged(suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(suite.parent)
    kept = [*foreign_duckdb.judged(suite, suite.parents[2])]
    # The five columns, the view and the count, the column that is not there, the random numbers.
    assert [each.verdict for each in kept] == [
        *["same"] * 6, "both", "same", "random", "(column left out)"
    ]  # fmt: skip
    assert kept[0].place == "test/sql/tiny.test:12"


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


def answer(sql: str) -> Answer:
    database = plain_duckdb()
    return answer_of(database, database.sql(sql).to_arrow_table())


@pytest.mark.parametrize(
    ("word", "expected", "found"), read_table(__file__, "foreign/verdicts.tsv")
)
def test_verdicts(word: str, expected: str, found: str) -> None:
    one, other = answer(expected), answer(found)
    assert judge(lambda: one, lambda: other, [lambda: one]).word == word


@pytest.mark.parametrize(
    ("error", "word"),
    [
        (icesql.errors.UnsupportedSqlError("PIVOT"), "refused"),
        (icesql.ProgrammingError("no"), "error"),
        (ValueError("no"), "FOREIGN"),
    ],
)
def test_verdicts_on_errors(error: Exception, word: str) -> None:
    assert judge(lambda: answer("SELECT 1"), lambda: Failure(error)).word == word


def test_an_answer_that_depends_on_the_order_of_rows_is_open() -> None:
    one, two, three = (answer(f"SELECT {n} AS i") for n in (1, 2, 3))
    assert judge(lambda: one, lambda: two, [lambda: one, lambda: three]).word == "open"


def test_a_golden_file_has_statements_at_lines(tmp_path: Path) -> None:
    blocks = ("SELECT a", "CREATE TABLE t\n(a INT)", "SELECT b")
    texts = (f"-- !query\n{each}\n-- !query schema\nstruct<>\n\n" for each in blocks)
    (tmp_path / "x.sql.out").write_text("-- Generated\n" + "".join(texts))
    found = foreign_spark.read_statements(tmp_path / "x.sql.out")
    assert found == [(3, blocks[0]), (8, blocks[1]), (14, blocks[2])]
    assert [foreign_spark.is_query(sql) for _, sql in found] == [True, False, True]
