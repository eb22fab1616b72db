"""add_files and register_table: existing files become part of a catalog."""

from __future__ import annotations

from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icesql
from icesql import errors
from tests.tables import read_table


def parquet(path: Path, schema: pa.Schema | None = None, **columns: list[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns, schema=schema), path, row_group_size=2)
    return path


def add(con: icesql.Connection, source: Path, more: str = "") -> list[Any]:
    return con.execute(f"CALL system.add_files('s.t', '`parquet`.`{source}`'{more})").fetchall()


NAMES = {**vars(pa), "Decimal": Decimal, "date": date, "time": time, "datetime": datetime}
# Types of stored columns: a value, options of the writer; and the column types that accept them.
STORED: dict[str, Any] = {}
TAKEN: dict[str, set[str]] = {"STRUCT(b INT)[]": set()}
for name, *cells, columns in read_table(__file__, "stored_types.tsv"):
    STORED[name] = [eval(each, NAMES) for each in cells]
    for kind in filter(None, columns.split("; ")):
        TAKEN.setdefault(kind, set()).add(name)


@pytest.mark.parametrize("kind", TAKEN)
def test_types_are_equal_or_widen(kind: str, lasting: Any, tmp_path) -> None:
    """As columns, and in turn in a list, in a struct and as values of a map."""
    con, _ = lasting
    place = [*TAKEN].index(kind)
    around = {
        "{}": lambda type: type,
        "{}[]": lambda type: pa.list_(type),
        "STRUCT(x {})": lambda type: pa.struct([("x", type)]),
        "MAP(VARCHAR, {})": lambda type: pa.map_(pa.string(), type),
    }
    for turn, (shape, type_of) in enumerate(around.items()):
        con.execute(
            f"CREATE OR REPLACE TABLE s.t (c {shape.format(kind)}) "
            "TBLPROPERTIES ('format-version' = '3')"
        )
        for number, (name, (type, _, options)) in enumerate(STORED.items()):
            if turn and (place + number) % 3 != turn - 1:
                continue
            path = tmp_path / f"{name}.parquet"
            pq.ParquetWriter(path, pa.schema([("c", type_of(type))]), **options).close()
            call = f"CALL system.add_files('s.t', '`parquet`.`{path}`')"
            if name in TAKEN[kind]:
                con.execute(f"EXPLAIN {call}").fetchall()
                continue
            with pytest.raises(errors.TypeMismatchError) as raised:
                con.execute(call)
            told = str(raised.value)
            for part in (str(path), 'its column "c', "is stored as", "INSERT INTO s.t SELECT"):
                assert part in told, told


def test_what_is_taken_is_read(con: icesql.Connection, tmp_path) -> None:
    for number, (kind, names) in enumerate(TAKEN.items()):
        con.execute(f"CREATE TABLE s.t{number} (c {kind}) TBLPROPERTIES ('format-version' = '3')")
        for name in sorted(names):
            type, value, options = STORED[name]
            path = tmp_path / f"{number}" / f"{name}.parquet"
            path.parent.mkdir(exist_ok=True)
            pq.write_table(pa.table({"c": pa.array([value], type)}), path, **options)
            con.execute(f"CALL system.add_files('s.t{number}', '`parquet`.`{path}`')")
        rows = con.execute(f"SELECT count(c), count(DISTINCT c) FROM s.t{number}").fetchall()
        distinct = 2 if kind == "VARCHAR" else min(1, len(names))
        assert rows == [(len(names), distinct)], kind
        con.execute(f"SELECT readable_metrics FROM s.t{number}.files").fetchall()


def test_a_column_is_found_beside_another_spelling(con: icesql.Connection, tmp_path) -> None:
    con.execute("CREATE TABLE s.t (id BIGINT, v BIGINT)")
    both = parquet(tmp_path / "both.parquet", ID=[1], id=[3], other=[4])
    assert add(con, both) == [(1, 1)]
    assert con.execute("SELECT id, v FROM s.t").fetchall() == [(3, None)]


def test_ids_of_some_columns_only(con: icesql.Connection, tmp_path) -> None:
    """Readers use ids only if there are any: columns without an id would be left out."""
    con.execute("CREATE TABLE s.t (a BIGINT, b BIGINT, st STRUCT(x BIGINT))")
    with_id = {b"PARQUET:field_id": b"1"}
    inner = pa.field("x", pa.int64(), metadata={b"PARQUET:field_id": b"4"})
    for fields, told in (
        ([pa.field("a", pa.int64(), metadata=with_id), ("b", pa.int64())], '"b" has no field id'),
        ([pa.field("b", pa.int64(), metadata=with_id)], 'has field id 1, which is "a"'),
        ([pa.field("a", pa.struct([inner]), metadata=with_id)], 'column "x" has field id 4'),
        ([pa.field("x", pa.int64(), metadata={b"PARQUET:field_id": b"4"})], 'which is "st.x"'),
    ):
        path = tmp_path / "x.parquet"
        pq.write_table(pa.schema(fields).empty_table(), path)
        with pytest.raises(errors.NotSupportedError, match=told):
            add(con, path)


def test_a_failed_commit_leaves_the_files(con: icesql.Connection, tmp_path, monkeypatch) -> None:
    from icesql.catalog.directory import DirectoryCatalog

    con.execute("CREATE TABLE s.t (i BIGINT)")
    path = parquet(tmp_path / "x.parquet", i=[1])

    def refuse(*_: Any) -> None:
        raise errors.CatalogError("no")

    monkeypatch.setattr(DirectoryCatalog, "swap", refuse)
    with pytest.raises(errors.CatalogError):
        add(con, path)
    assert path.exists()
