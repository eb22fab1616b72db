"""Runs every .slt file with both local readers, each query again and again."""

from __future__ import annotations

from pathlib import Path

import pytest

import icesql
from tests.slt.runner import read_script, run_record, run_repeatedly, statements

FOLDER = Path(__file__).parent
FILES = sorted(FOLDER.glob("*.slt"))


@pytest.mark.parametrize("reader", ["auto", "arrow"])
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_users_see(
    path: Path, reader: str, warehouse: Path, request: pytest.FixtureRequest
) -> None:
    script = read_script(path)
    corpus = request.getfixturevalue("corpus") if script.needs_corpus else None
    with icesql.connect(warehouse=str(warehouse)) as connection:
        connection.execute(f"SET local_reader = '{reader}'")
        for record in script.records:
            try:
                run_repeatedly(connection, record, corpus)
            except (AssertionError, icesql.Error) as error:
                pytest.fail(f"{path.name}:{record.line}\n{record.sql}\n{error}", pytrace=False)


def test_the_runner_finds_a_wrong_answer(tmp_path: Path) -> None:
    script = tmp_path / "wrong.slt"
    script.write_text("query I\nSELECT 1\n----\n2\n", encoding="utf-8")
    (record,) = read_script(script).records
    with icesql.connect() as connection, pytest.raises(AssertionError):
        run_record(connection, record, None)


def test_there_is_a_file_per_feature() -> None:
    assert len(FILES) >= 6
    assert len(list(statements(FOLDER))) > 50
