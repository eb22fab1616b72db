"""A vector belongs to the data file that its Puffin names, and its positions are rows of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql.errors import CorruptFileError
from tests.maintain.rewrite.tables import catalog_of, new_table, rows


def _table(folder: Path, count: int = 2, positions: int = 1) -> tuple[Any, list[Any]]:
    """A table of two files of ten rows, and the vectors of both, as yet uncommitted."""
    table = new_table(folder, 3)
    files = [table.data_file(rows(10 * number, 10)) for number in range(count)]
    table.commit(files)
    return table, table.deletion_vectors([(file, [*range(positions)]) for file in files])


@pytest.mark.parametrize("statement", ["SELECT id FROM ns.t", "DELETE FROM ns.t WHERE id = 5"])
def test_the_blob_of_another_data_file_is_refused(tmp_path, statement: str) -> None:
    table, (one, two) = _table(tmp_path)
    places = [
        {name: each.record[name] for name in ("content_offset", "content_size_in_bytes")}
        for each in (one, two)
    ]
    one.record.update(places[1])
    two.record.update(places[0])
    table.commit([one, two])
    folder = catalog_of(table).folder
    with icesql.connect(warehouse=folder) as con:
        for _ in range(2):  # from the cache, too
            with pytest.raises(CorruptFileError, match=r"belongs to .*, and the manifest gives"):
                con.execute(statement).fetchall()


def test_one_blob_for_two_data_files_is_refused(tmp_path) -> None:
    table, (one, two) = _table(tmp_path)
    for name in ("content_offset", "content_size_in_bytes"):
        two.record[name] = one.record[name]
    table.commit([one, two])
    with (
        icesql.connect(warehouse=catalog_of(table).folder) as con,
        pytest.raises(CorruptFileError, match="belongs to"),
    ):
        con.execute("SELECT id FROM ns.t").fetchall()


@pytest.mark.parametrize("count", [2, 700])
def test_vectors_of_one_puffin_are_read_however_large_it_is(tmp_path, count: int) -> None:
    table, vectors = _table(tmp_path, 2)
    if count > 2:
        # The footer of many blobs is read by itself.
        vectors = [
            *vectors,
            *table.deletion_vectors([(each, [*range(0, 400_000, 3)]) for each in table.live[:2]]),
        ][2:]
    table.commit(vectors)
    with icesql.connect(warehouse=catalog_of(table).folder) as con:
        found = con.execute("SELECT count(*) FROM ns.t").fetchone()
        listed = con.execute("SELECT id FROM ns.t").fetchall()
    assert found == (len(listed),) == ((18,) if count == 2 else (12,))


@pytest.mark.parametrize("damage", ["none", "footer", "names"])
def test_a_footer_that_says_nothing_refuses_nothing(tmp_path, damage: str) -> None:
    table, vectors = _table(tmp_path)
    table.commit(vectors)
    path = Path(vectors[0].record["file_path"])
    data = path.read_bytes()
    if damage == "footer":
        path.write_bytes(data[:-4] + b"XXXX")
    elif damage == "names":
        path.write_bytes(data.replace(b"referenced-data-file", b"referenced-data-elif"))
    with icesql.connect(warehouse=catalog_of(table).folder) as con:
        assert con.execute("SELECT count(*) FROM ns.t WHERE x IS NULL OR id > 0").fetchone() == (
            len(con.execute("SELECT id FROM ns.t").fetchall()),
        )


def test_the_puffins_of_a_table_that_was_moved_as_it_is(tmp_path) -> None:
    table, vectors = _table(tmp_path / "old")
    table.commit(vectors)
    (tmp_path / "old").rename(tmp_path / "new")
    with icesql.connect(warehouse=str(tmp_path / "new" / "wh")) as con:
        assert len(con.execute("SELECT id FROM ns.t").fetchall()) == 18
