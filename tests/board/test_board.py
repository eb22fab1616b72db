"""The board says what its results hold, its judge judges, and icesql answers as recorded."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.board import adapters
from tests.board.engines import ENGINES, ask
from tests.board.judge import CRASHED, RIGHT, VERDICTS, verdict
from tests.board.page import results
from tests.board.questions import lay, load
from tests.tables import read_table

# One of each kind: deletes of rows by value and by position, vectors, evolution, lineage, nanoseconds.
TABLES = (
    "deletes/eq_specs_parquet",
    "deletes/mor_orc_avro",
    "deletes/upgrade_mixed_parquet",
    "evolution/nested_avro",
    "evolution/transforms_parquet_v2",
    "v3/lineage_parquet_merg",
    "v3/nanos_parquet_year",
)


def test_each_engine_of_the_board_has_an_adapter() -> None:
    assert all(callable(getattr(adapters, each.name.lower())) for each in ENGINES)


def test_every_engine_was_asked_every_question() -> None:
    _, questions = load()
    ids = [each.id for each in questions]
    for name, engine in results()["engines"].items():
        assert list(engine["verdicts"]) == ids, name
        assert {each for each, _ in engine["verdicts"].values()} <= set(VERDICTS)


def test_icesql_answers_as_recorded(tmp_path: Path) -> None:
    tables, questions = load()
    metadata = lay([tables[each] for each in TABLES], tmp_path)
    questions = [each for each in questions if each.table in TABLES]
    asked = [each.asked(metadata[each.table]) for each in questions]
    answers = [answer for _, answer in ask(ENGINES[0], Path(sys.executable), asked, tmp_path, 60)]
    verdicts = {
        question.id: verdict(question.expected, answer)[0]
        for question, answer in zip(questions, answers, strict=True)
    }
    recorded = results()["engines"]["icesql"]["verdicts"]
    assert verdicts == {name: recorded[name][0] for name in verdicts}
    assert len(verdicts) > 20


def test_a_process_that_ends_is_started_again(tmp_path: Path) -> None:
    tables, questions = load()
    question = next(each for each in questions if each.table == TABLES[0])
    metadata = lay([tables[TABLES[0]]], tmp_path)[TABLES[0]]
    good = question.asked(metadata)
    no_time = ask(ENGINES[0], Path(sys.executable), [good], tmp_path, 0)
    assert [type(answer) for _, answer in no_time] == [TimeoutError]
    answers = ask(ENGINES[0], Path(sys.executable), [{}, good], tmp_path, 60)
    first, second = (answer for _, answer in answers)
    assert verdict([], first)[0] == CRASHED
    assert verdict(question.expected, second)[0] == RIGHT


@pytest.mark.parametrize(("word", "expected", "answer"), read_table(__file__, "judged.tsv"))
def test_the_judge_takes_a_value_in_another_type_and_knows_another_value(
    word: str, expected: str, answer: str
) -> None:
    found, reason = verdict(json.loads(expected), json.loads(answer))
    assert found == word
    assert bool(reason) == (word != "right")
