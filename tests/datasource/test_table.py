"""Tables, snapshots and columns as ``format("icesql")`` names them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from icesql.errors import (
    CatalogError,
    ColumnNotFoundError,
    ProgrammingError,
    SnapshotNotFoundError,
    TableNotFoundError,
)
from tests.datasource.reads import (
    FIELDS,
    loaded,
    numbers,
    planned,
    rows,
    values,
)
from tests.writer.fields import fields
from tests.writer.table import TableWriter

# ------------------------------------------------------------------ names


def test_names_with_and_without_the_catalog(warehouse: Path) -> None:
    from icesql.datasource.table import ReadRequest

    def table_of(path: str, **connect: Any) -> str:
        return str(ReadRequest.of({"path": path}, connect).table().name)

    uri = f"sqlite:///{warehouse}/catalog.db"
    for connect in ({"uri": uri}, {"uri": uri, "name": "shop"}, {"warehouse": str(warehouse)}):
        for name in ("shop.customers", "shop.shop.customers", "`shop`.`customers`"):
            assert table_of(name, **connect) == "shop.customers", (name, connect)
    with pytest.raises(TableNotFoundError, match="did you mean"):
        table_of("shop.customer", uri=uri)
    with pytest.raises(ProgrammingError, match=r"neither .* nor a path"):
        table_of("shop..customers", uri=uri)
    with pytest.raises(TableNotFoundError, match="no such file or folder"):
        table_of("/nowhere/t", uri=uri)
    with pytest.raises(CatalogError, match="no catalog"):
        table_of("nobody.knows.me")
    with pytest.raises(ProgrammingError, match="needs a table"):
        table_of("")


def test_another_configured_catalog_is_found_by_its_name(
    warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from icesql.datasource.table import ReadRequest

    monkeypatch.setenv("PYICEBERG_CATALOG__SHOP__URI", f"sqlite:///{warehouse}/catalog.db")
    for connect in ({}, {"warehouse": str(warehouse)}):
        found = ReadRequest.of({"path": "shop.shop.customers"}, connect).table()
        assert found.identifier[-1] == "customers"


def test_a_metadata_file_is_read_as_it_is(table: TableWriter) -> None:
    path = table.metadata_path
    table.commit([table.data_file(rows(5))])
    assert numbers(path) == [1, 2, 3, 4]
    assert numbers(f"file://{path}") == [1, 2, 3, 4]


def test_branches_and_tags_that_look_like_numbers(table: TableWriter) -> None:
    table.tag("1001", 1000)
    table.tag("7", 1000, kind="branch")
    table.set_fields([*FIELDS, *fields("new int", 3)])
    assert numbers(table, tag="1001") == [1, 2, 3]
    assert values(planned(table, tag="1001"))[0].keys() == {"x", "s"}
    assert numbers(table, branch="7") == [1, 2, 3]
    assert values(planned(table, branch="7"))[0].keys() == {"x", "s", "new"}, "as it is now"
    with pytest.raises(SnapshotNotFoundError, match="7 is a branch"):
        planned(table, tag="7")
    with pytest.raises(SnapshotNotFoundError, match=r'branch "mian".*did you mean "main"'):
        planned(table, branch="mian")


# ------------------------------------------------------------------ columns


def test_columns_are_chosen_by_name(table: TableWriter) -> None:
    found = values(planned(table, columns="S, _pos, `x`, _file, _snapshot_id", snapshot_id=1000))
    assert [list(row) for row in found] == [["s", "_pos", "x", "_file", "_snapshot_id"]] * 3
    assert sorted((row["x"], row["_pos"]) for row in found) == [(1, 0), (2, 1), (3, 0)]
    assert {row["_snapshot_id"] for row in found} == {1000}
    with pytest.raises(ColumnNotFoundError, match='did you mean "s"'):
        planned(table, columns="x, s.inner")
    with pytest.raises(ColumnNotFoundError):
        planned(table, columns="y")


def test_a_name_with_a_comma_stands_in_backticks(tmp_path: Path) -> None:
    table = TableWriter(
        tmp_path / "odd", [{"id": 1, "name": "a,`b", "required": False, "type": "int"}]
    )
    table.commit([table.data_file([{"a,`b": 1}])])
    assert values(planned(table, columns="`a,``b`")) == [{"a,`b": 1}]


def test_the_partition_column_is_there(warehouse: Path) -> None:
    from icesql.datasource.read import BatchPlanning
    from icesql.datasource.table import ReadRequest

    options = {"path": "shop.orders", "columns": "_partition, id"}
    found = ReadRequest.of(options, {"warehouse": str(warehouse)})
    rows_read = values(BatchPlanning(replace(found, fixed=found.columns())))
    assert rows_read[0]["_partition"].keys() == {"ordered_on", "region"}


def test_columns_are_those_of_load_whatever_becomes_of_the_table(table: TableWriter) -> None:
    kept = loaded(table)
    required = [{**FIELDS[0], "name": "y"}]
    table.set_fields(required)
    table.commit([table.data_file([{"y": 5}])])
    from icesql.datasource.read import BatchPlanning

    found = sorted((row["x"], row["s"]) for row in values(BatchPlanning(kept)))
    assert found[-2:] == [(4, "row 4"), (5, None)]


def test_another_table_of_that_name_is_not_read_by_its_columns(table: TableWriter) -> None:
    import json

    from icesql.datasource.read import BatchPlanning

    kept = loaded(table)
    path = Path(table.write_metadata())
    metadata = json.loads(path.read_text()) | {"table-uuid": "00000000-0000-0000-0000-000000000001"}
    path.write_text(json.dumps(metadata))
    with pytest.raises(TableNotFoundError, match="another table has that name"):
        BatchPlanning(kept).partitions()
