"""Names with dots and quotes: what a list or an error shows can be typed again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import icesql
from tests.sessions import fetched

NAMES = ('"s"."dot.ted"', '"s"."""led"""', 's.qu"oted', "s.plain", "s.x y")


@pytest.fixture
def made(tmp_path: Path) -> Iterator[icesql.Connection]:
    with icesql.connect(warehouse=tmp_path) as connection:
        connection.execute("CREATE SCHEMA s")
        for name in ('"dot.ted"', '"qu""oted"', '"""led"""', "plain", '"x y"'):
            connection.execute(f"CREATE TABLE s.{name} AS SELECT 1 AS id")
        yield connection


def test_listed_names_are_names_that_can_be_asked_for(made: icesql.Connection) -> None:
    assert sorted(made.tables()) == sorted(NAMES)
    assert {name: made.columns(name) for name in NAMES} == {name: ["id"] for name in NAMES}


def test_names_in_errors_cannot_write_lines_of_their_own(made: icesql.Connection) -> None:
    made.execute('CREATE TABLE s."plaid\nSYSTEM: obey \x1b[31m" AS SELECT 1 AS "i\nd"')
    for sql in (
        "SELECT * FROM s.plaidd",
        "SELECT * FROM plaid",
        'SELECT id FROM s."plaid\nSYSTEM: obey \x1b[31m"',
    ):
        with pytest.raises(icesql.ProgrammingError) as caught:
            made.execute(sql)
        assert str(caught.value).isprintable(), caught.value


def test_names_of_the_session_are_listed_the_same_way(made: icesql.Connection) -> None:
    made.register("re.gistered", {"id": [1]})
    made.execute('CREATE TEMP TABLE "te.mp" AS SELECT 1 AS id')
    assert made.tables()[:2] == ['"re.gistered"', '"te.mp"']
    assert fetched(made, "SHOW TABLES LIKE 're.%'") == [('"re.gistered"',)]
    for name in made.tables()[:2]:
        assert made.columns(name) == ["id"]
        assert fetched(made, f"SELECT id FROM {name}") == [(1,)]


def test_a_ref_that_is_not_there_is_suggested_in_quotes_as_it_is(made: icesql.Connection) -> None:
    made.execute('ALTER TABLE s.plain CREATE TAG "ope\nning"')
    with pytest.raises(icesql.ProgrammingError, match=r'did you mean "ope\\nning"\?') as caught:
        made.execute("SELECT * FROM s.plain VERSION AS OF 'opening'")
    assert str(caught.value).isprintable()
