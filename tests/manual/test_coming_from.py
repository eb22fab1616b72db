"""What the chapter for those who come from another system says of its words, statement by statement."""

from __future__ import annotations

from pathlib import Path

import pytest

import icesql
from icesql import demo
from tests.tables import read_table


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("coming-from")
    demo.build(place / "lake")
    (place / "one.csv").write_text("id\n1\n", encoding="utf-8")
    with icesql.connect(warehouse=place / "lake") as connection:
        connection.execute("CREATE TABLE demo.t (id BIGINT)")
    return place


@pytest.mark.parametrize(("dialect", "sql"), read_table(__file__, "works.tsv"))
def test_the_same_words_work(dialect: str, sql: str, folder: Path) -> None:
    text = sql.format(folder=folder)
    with icesql.connect(
        warehouse=folder / "lake", dialect=dialect, files=[str(folder)], read_only=False
    ) as connection:
        for cursor in connection.execute_script(text):
            if cursor.description:
                cursor.fetchall()


@pytest.mark.parametrize(("dialect", "sql", "said"), read_table(__file__, "refused.tsv"))
def test_what_is_not_there_is_refused_with_what_is(
    dialect: str, sql: str, said: str, folder: Path
) -> None:
    with (
        icesql.connect(warehouse=folder / "lake", dialect=dialect) as connection,
        pytest.raises(icesql.Error) as found,
    ):
        connection.execute(sql)
    assert said in str(found.value)
