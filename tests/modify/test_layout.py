"""Partition fields, sort orders and identifier fields change; rows stay readable and are pruned."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import icesql
from icesql import errors
from icesql.catalog.targets import table_to_change
from icesql.iceberg.metadata.table_metadata import TableMetadata

COLUMNS = "(id BIGINT NOT NULL, c VARCHAR, ts TIMESTAMP, d DATE, s STRUCT<x: INT>)"


def metadata(con: icesql.Connection) -> TableMetadata:
    return table_to_change(con._session.state.names, ("s", "t"))[1].metadata


def partitioned(con: icesql.Connection) -> list[tuple[str, str, str]]:
    """Name, transform and source of each field of the default spec."""
    found = metadata(con)
    return [
        (each.name, each.transform, found.schema.name_by_id[each.source_id])
        for each in found.spec.fields
    ]


def ordered(con: icesql.Connection) -> list[tuple[str, str, str, str]]:
    found = metadata(con)
    order = found.sort_orders[found.default_sort_order_id]
    return [
        (found.schema.name_by_id[each.source_ids[0]], each.transform, each.direction, each.null_order)
        for each in order.fields
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("catalog", "version"),
    [("directory", 1), ("sqlite", 2), ("directory", 3)],
    indirect=["catalog"],
)
def test_partition_fields_come_and_go(con: icesql.Connection, version: int) -> None:
    con.execute(
        f"CREATE TABLE s.t {COLUMNS} PARTITIONED BY (c) TBLPROPERTIES ('format-version' = '{version}')"
    )
    void = [("c", "void", "c")] if version == 1 else []
    rows = 0
    for sql, fields in (
        ("ADD PARTITION FIELD bucket(4, id)", [("c", "identity", "c"), ("id_bucket_4", "bucket[4]", "id")]),
        ("DROP PARTITION FIELD c", [*void, ("id_bucket_4", "bucket[4]", "id")]),
        ("ADD PARTITION FIELD days(ts) AS day", [*void, ("id_bucket_4", "bucket[4]", "id"), ("day", "day", "ts")]),
        ("DROP PARTITION FIELD bucket(id, 4)", None),
        ("REPLACE PARTITION FIELD day WITH hours(ts) AS h", None),
        ("ADD PARTITION FIELD s.x", None),
        ("ADD PARTITION FIELD truncate(2, c)", None),
        ("SET PARTITIONED BY (year(d), c)", None),
        ("SET PROPERTIES partitioning = ARRAY['month(d)', 'bucket(id, 8)']", None),
        ("SET PARTITION SPEC (bucket(8, id), months(d))", None),
        ("RESET PARTITIONED BY", None),
        ("ADD PARTITION FIELD c", None),
    ):  # fmt: skip
        con.execute(f"ALTER TABLE s.t {sql}")
        if fields is not None:
            assert partitioned(con) == fields
        con.execute(
            f"INSERT INTO s.t SELECT i, CASE WHEN i % 5 > 0 THEN 'c' || i % 5 END, "
            f"TIMESTAMP '2026-01-01' + INTERVAL (i) HOUR, DATE '2026-01-01' + i::INT * 40, "
            f"{{'x': i}} FROM range({rows}, {rows + 7}) r(i)"
        )
        rows += 7
    live = [each for each in partitioned(con) if each[1] != "void"]
    assert live == [("c", "identity", "c")]
    found = con.execute("SELECT id, c, ts, s.x FROM s.t ORDER BY id").fetchall()
    assert [row[0] for row in found] == list(range(rows)) == [row[3] for row in found]
    for where in ("c = 'c1'", "id = 17", "ts < TIMESTAMP '2026-01-02'", "c IS NULL", "s.x = 40"):
        pruned = con.execute(f"SELECT id FROM s.t WHERE {where} ORDER BY id").fetchall()
        con.execute("SET prune = off")
        assert pruned == con.execute(f"SELECT id FROM s.t WHERE {where} ORDER BY id").fetchall()
        con.execute("SET prune = on")
        assert pruned


def test_a_field_that_comes_back_is_the_same(con: icesql.Connection) -> None:
    con.execute(f"CREATE TABLE s.t {COLUMNS} PARTITIONED BY (days(ts), c)")
    before = metadata(con)
    con.execute("ALTER TABLE s.t DROP PARTITION FIELD c")
    con.execute("ALTER TABLE s.t ADD PARTITION FIELD c")
    after = metadata(con)
    assert after.spec == before.spec
    con.execute("ALTER TABLE s.t REPLACE PARTITION FIELD c WITH c AS region")
    assert [each.name for each in metadata(con).spec.fields] == ["ts_day", "region"]
    assert metadata(con).spec.fields[1].field_id == before.spec.fields[1].field_id
    location = metadata(con).location
    versions = len(
        list((Path(location.removeprefix("file:")) / "metadata").glob("*.metadata.json"))
    )
    con.execute("ALTER TABLE s.t SET PARTITIONED BY (days(ts), c)")
    con.execute(
        "ALTER TABLE s.t SET PROPERTIES format_version = 2, partitioning = ARRAY['day(ts)', 'c']"
    )
    found = len(list((Path(location.removeprefix("file:")) / "metadata").glob("*.metadata.json")))
    assert found <= versions + 1


def test_orders(con: icesql.Connection) -> None:
    con.execute(f"CREATE TABLE s.t {COLUMNS}")
    for sql, order, mode in (
        ("WRITE ORDERED BY c, bucket(4, id) DESC", [("c", "identity", "asc", "nulls-first"), ("id", "bucket[4]", "desc", "nulls-last")], "range"),
        ("WRITE LOCALLY ORDERED BY C DESC NULLS FIRST", [("c", "identity", "desc", "nulls-first")], "none"),
        ("WRITE DISTRIBUTED BY PARTITION", [], "hash"),
        ("WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY id ASC NULLS LAST", [("id", "identity", "asc", "nulls-last")], "hash"),
        ("WRITE ORDERED BY (s.x, d)", [("s.x", "identity", "asc", "nulls-first"), ("d", "identity", "asc", "nulls-first")], "range"),
        ("WRITE UNORDERED", [], "none"),
        ("SET SORTED BY (id DESC)", [("id", "identity", "desc", "nulls-last")], "none"),
        ("RESET SORTED BY", [], "none"),
        ("SET PROPERTIES sorted_by = ARRAY['c DESC NULLS LAST', 'id'], format_version = 3", [("c", "identity", "desc", "nulls-last"), ("id", "identity", "asc", "nulls-first")], "none"),
    ):  # fmt: skip
        con.execute(f"ALTER TABLE s.t {sql}")
        assert ordered(con) == order, sql
        assert metadata(con).properties["write.distribution-mode"] == mode, sql
    assert metadata(con).format_version == 3
    numbers = list(range(500))
    random.Random(1).shuffle(numbers)
    con.execute("ALTER TABLE s.t WRITE ORDERED BY id DESC")
    values = ", ".join(f"({each}, NULL, NULL, NULL, NULL)" for each in numbers)
    con.execute(f"INSERT INTO s.t VALUES {values}")
    found = con.execute("SELECT id FROM s.t ORDER BY _file, _pos").fetchall()
    assert [row[0] for row in found] == sorted(numbers, reverse=True)
    (sorted_by,) = con.execute("SELECT sort_order_id FROM s.t.files").fetchall()
    assert sorted_by[0] == metadata(con).default_sort_order_id > 0


def test_identifier_fields(con: icesql.Connection) -> None:
    con.execute(
        'CREATE TABLE s.t (id BIGINT NOT NULL, "a.b" INT NOT NULL, s STRUCT<x: INT NOT NULL> NOT NULL, n INT, f DOUBLE NOT NULL)'
    )

    def names() -> set[str]:
        found = metadata(con).schema
        return {found.name_by_id[each] for each in found.identifier_field_ids}

    con.execute('ALTER TABLE s.t SET IDENTIFIER FIELDS id, s.x, "a.b"')
    assert names() == {"id", "s.x", "a.b"}
    con.execute("ALTER TABLE s.t DROP IDENTIFIER FIELDS s.x")
    assert names() == {"id", "a.b"}
    for sql, message in (
        ("SET IDENTIFIER FIELDS n", "n"), ("SET IDENTIFIER FIELDS f", "f"),
        ("DROP IDENTIFIER FIELDS n", "no identifier field"), ("DROP COLUMN id", "identifier field"),
        ("SET IDENTIFIER FIELDS nothing", "nothing"), ("ALTER COLUMN id DROP NOT NULL", "id"),
    ):  # fmt: skip
        with pytest.raises(errors.ProgrammingError, match=message):
            con.execute(f"ALTER TABLE s.t {sql}")
    con.execute("ALTER TABLE s.t SET IDENTIFIER FIELDS id")
    con.execute("ALTER TABLE s.t RENAME COLUMN id TO key")
    assert names() == {"key"}


def test_an_upgrade_gives_rows_ids(con: icesql.Connection) -> None:
    con.execute("CREATE TABLE s.t (a INT) TBLPROPERTIES ('format-version' = '1')")
    con.execute("INSERT INTO s.t VALUES (1), (2)")
    for version in (2, 3):
        con.execute(f"ALTER TABLE s.t SET TBLPROPERTIES ('format-version' = '{version}')")
        assert metadata(con).format_version == version
        assert "format-version" not in metadata(con).properties
    con.execute("INSERT INTO s.t VALUES (3)")
    found = con.execute("SELECT a, _row_id FROM s.t ORDER BY a").fetchall()
    assert [row[0] for row in found] == [1, 2, 3]
    assert len({row[1] for row in found}) == 3
    assert metadata(con).next_row_id == 3


def test_comments(con: icesql.Connection) -> None:
    con.execute("CREATE TABLE s.t (a INT, b INT COMMENT 'old')")
    con.execute("COMMENT ON TABLE s.t IS 'it''s a table'")
    con.execute("COMMENT ON COLUMN s.t.a IS 'new'")
    con.execute("COMMENT ON COLUMN s.t.b IS NULL")
    found = metadata(con)
    assert found.properties["comment"] == "it's a table"
    assert [each.doc or None for each in found.schema.fields] == ["new", None]
    con.execute("COMMENT ON TABLE s.t IS NULL")
    assert "comment" not in metadata(con).properties
    with pytest.raises(errors.SqlSyntaxError, match="TABLE"):
        con.execute("COMMENT ON VIEW v IS 'x'")
