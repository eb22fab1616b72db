"""add_files and register_table: what is there already becomes part of a catalog."""

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


def parquet(path: Path, schema: pa.Schema | None = None, **columns: list[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns, schema=schema), path, row_group_size=2)
    return path


def add(con: icesql.Connection, source: Path, more: str = "") -> list[Any]:
    return con.execute(f"CALL system.add_files('s.t', '`parquet`.`{source}`'{more})").fetchall()


def test_files_without_ids_are_read_by_name(con: icesql.Connection, tmp_path: Path) -> None:
    con.execute(
        "CREATE TABLE s.t (s STRING, i BIGINT, st STRUCT<a BIGINT, b STRING>, l ARRAY<BIGINT>)"
    )
    con.execute("INSERT INTO s.t (s, i) VALUES ('own', 0)")
    parquet(
        tmp_path / "in/x.parquet", i=[1, 2, 3], s=["a", "z" * 40, None],
        other=[1, 2, 3], st=[{"b": "q", "a": 5}, None, {"b": None, "a": 6}], l=[[1], [], None],
    )  # fmt: skip
    (tmp_path / "in" / "_SUCCESS").write_text("")
    (tmp_path / "in" / ".x.parquet.crc").write_text("x")
    plan = con.execute(
        f"EXPLAIN CALL system.add_files('s.t', '`parquet`.`{tmp_path}/in`')"
    ).fetchall()
    assert [row[:2] for row in plan] == [("set", "property"), ("set", "data file")]
    assert con.execute("SELECT count(*) FROM s.t").fetchall() == [(1,)]
    assert add(con, tmp_path / "in") == [(1, 1)]
    rows = con.execute("SELECT i, s, st, l FROM s.t ORDER BY i").fetchall()
    assert rows == [
        (0, "own", None, None), (1, "a", {"a": 5, "b": "q"}, [1]), (2, "z" * 40, None, []),
        (3, None, {"a": 6, "b": None}, None),
    ]  # fmt: skip
    con.execute("ALTER TABLE s.t RENAME COLUMN i TO k")
    assert con.execute("SELECT k FROM s.t WHERE k > 2").fetchall() == [(3,)]
    found = con.execute(
        "SELECT record_count, value_counts, null_value_counts, split_offsets IS NOT NULL, "
        "readable_metrics.k.lower_bound, readable_metrics.k.upper_bound, "
        "readable_metrics.s.upper_bound FROM s.t.files WHERE record_count = 3"
    ).fetchall()
    assert found[0][0] == 3
    assert found[0][3:] == (True, 1, 3, "z" * 15 + "{")


def test_values_of_folders(con: icesql.Connection, tmp_path: Path) -> None:
    """As Hive and Spark write them."""
    con.execute(
        "CREATE TABLE s.t (i BIGINT, p STRING, d DATE, n INT, m DECIMAL(5, 2), ok BOOLEAN) "
        "PARTITIONED BY (p, d, n, m, ok)"
    )
    null = "__HIVE_DEFAULT_PARTITION__"
    folders = {
        "p=a%2Fb%25/d=2026-01-31/n=-3/m=1.5/ok=true": ("a/b%", date(2026, 1, 31), -3, Decimal("1.50"), True),
        f"p={null}/d={null}/n={null}/m={null}/ok={null}": (None,) * 5,
        "P=é b=c/D=1969-12-31/N=7/M=-2/OK=FALSE": ("é b=c", date(1969, 12, 31), 7, Decimal(-2), False),
    }  # fmt: skip
    for number, folder in enumerate(folders):
        parquet(tmp_path / "in" / folder / "f.parquet", i=[number])
    assert add(con, tmp_path / "in") == [(3, 3)]
    rows = con.execute("SELECT i, p, d, n, m, ok FROM s.t ORDER BY i").fetchall()
    assert rows == [(number, *values) for number, values in enumerate(folders.values())]
    assert con.execute("SELECT i FROM s.t WHERE p = 'a/b%' AND n < 0").fetchall() == [(0,)]


def test_some_partitions(con: icesql.Connection, tmp_path: Path) -> None:
    con.execute("CREATE TABLE s.t (i BIGINT, p STRING) PARTITIONED BY (p)")
    for name in "ab":
        parquet(tmp_path / "in" / f"p={name}" / "f.parquet", i=[1])
    assert add(con, tmp_path / "in", ", map('p', 'b')") == [(1, 1)]
    assert con.execute("SELECT p FROM s.t").fetchall() == [("b",)]
    with pytest.raises(errors.ProgrammingError, match=r"are part of .* already"):
        add(con, tmp_path / "in")
    for wrong, told in (("'q', 'b'", "no partition field"), ("'p', 'c'", "no files of these")):
        with pytest.raises(errors.ProgrammingError, match=told):
            add(con, tmp_path / "in", f", map({wrong})")
    assert add(con, tmp_path / "in", ", check_duplicate_files => false") == [(2, 2)]
    assert con.execute("SELECT count(*) FROM s.t").fetchall() == [(3,)]


def test_narrower_types_have_bounds(con: icesql.Connection, tmp_path: Path) -> None:
    con.execute("CREATE TABLE s.t (us TIMESTAMP, d DECIMAL(19, 2), f DOUBLE, x INT, y BIGINT)")
    at = datetime(2026, 1, 31, 12)
    schema = pa.schema(
        [("us", pa.timestamp("us")), ("d", pa.decimal128(9, 2)), ("f", pa.float32()),
         ("x", pa.int8()), ("y", pa.int16())]
    )  # fmt: skip
    parquet(tmp_path / "x.parquet", schema, us=[at], d=[Decimal("-1.25")], f=[0.5], x=[-1], y=[-9])
    add(con, tmp_path / "x.parquet")
    for condition in (f"us = TIMESTAMP '{at}'", "d < 0", "d = -1.25", "f = 0.5", "x < 0", "y = -9"):
        assert con.execute(f"SELECT count(*) FROM s.t WHERE {condition}").fetchall() == [(1,)]
    (bounds,) = con.execute("SELECT lower_bounds FROM s.t.files").fetchone()
    assert sorted(dict(bounds)) == [1, 2, 3, 4, 5]


NOON = datetime(2026, 1, 1, 12)
# What a file may hold, with a value.
STORED: dict[str, tuple[pa.DataType, Any, dict[str, Any]]] = {
    "bool": (pa.bool_(), True, {}),
    "int8": (pa.int8(), -5, {}),
    "int16": (pa.int16(), -5, {}),
    "int32": (pa.int32(), -5, {}),
    "int64": (pa.int64(), -5, {}),
    "uint8": (pa.uint8(), 5, {}),
    "uint16": (pa.uint16(), 5, {}),
    "uint32": (pa.uint32(), 5, {}),
    "uint64": (pa.uint64(), 5, {}),
    "half": (pa.float16(), None, {}),
    "float": (pa.float32(), 0.5, {}),
    "double": (pa.float64(), 0.5, {}),
    "decimal(5, 2)": (pa.decimal128(5, 2), Decimal("1.25"), {}),
    "decimal(5, 2) in int32": (
        pa.decimal128(5, 2), Decimal("1.25"), {"store_decimal_as_integer": True},
    ),
    "decimal(9, 2)": (pa.decimal128(9, 2), Decimal("1.25"), {}),
    "decimal(18, 2)": (pa.decimal128(18, 2), Decimal("1.25"), {}),
    "decimal(9, 3)": (pa.decimal128(9, 3), Decimal("1.255"), {}),
    "decimal(9, 1)": (pa.decimal128(9, 1), Decimal("1.2"), {}),
    "decimal(50, 2)": (pa.decimal256(50, 2), Decimal("1.25"), {}),
    "date": (pa.date32(), date(2026, 1, 1), {}),
    "time[ms]": (pa.time32("ms"), time(1), {}),
    "time[us]": (pa.time64("us"), time(1), {}),
    "time[ns]": (pa.time64("ns"), time(1), {}),
    "timestamp[ms]": (pa.timestamp("ms"), NOON, {}),
    "timestamp[us]": (pa.timestamp("us"), NOON, {}),
    "timestamp[ns]": (pa.timestamp("ns"), NOON, {}),
    "timestamp[ms, UTC]": (pa.timestamp("ms", "UTC"), NOON, {}),
    "timestamp[us, UTC]": (pa.timestamp("us", "Europe/Berlin"), NOON, {}),
    "timestamp[ns, UTC]": (pa.timestamp("ns", "UTC"), NOON, {}),
    "INT96": (pa.timestamp("ns"), NOON, {"use_deprecated_int96_timestamps": True}),
    "duration": (pa.duration("us"), 5, {}),
    "string": (pa.string(), "a", {}),
    "large_string": (pa.large_string(), "a", {}),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), "a", {}),
    "json": (pa.json_(), "1", {}),
    "binary": (pa.binary(), b"a", {}),
    "fixed[3]": (pa.binary(3), b"abc", {}),
    "fixed[16]": (pa.binary(16), b"a" * 16, {}),
    "uuid": (pa.uuid(), b"a" * 16, {}),
    "null": (pa.null(), None, {}),
    "struct": (pa.struct([("a", pa.int32())]), {"a": 1}, {}),
    "list": (pa.list_(pa.int32()), [1], {}),
    "map": (pa.map_(pa.string(), pa.int32()), [("a", 1)], {}),
}  # fmt: skip
# The types of a table, and what they take.
TAKEN = {
    "BOOLEAN": {"bool"},
    "INT": {"int8", "int16", "int32"},
    "BIGINT": {"int8", "int16", "int32", "int64"},
    "FLOAT": {"float"},
    "DOUBLE": {"float", "double"},
    "DECIMAL(9, 2)": {"decimal(5, 2)", "decimal(5, 2) in int32", "decimal(9, 2)"},
    "DECIMAL(38, 2)": {
        "decimal(5, 2)", "decimal(5, 2) in int32", "decimal(9, 2)", "decimal(18, 2)",
    },
    "DATE": {"date"},
    "TIME": {"time[us]"},
    "TIMESTAMP": {"timestamp[us]"},
    "TIMESTAMPTZ": {"timestamp[us, UTC]", "INT96"},
    "TIMESTAMP_NS": {"timestamp[ns]"},
    "VARCHAR": {"string", "large_string", "dictionary", "json"},
    "BLOB": {"binary"},
    "UUID": {"uuid"},
    "STRUCT(a INT)": {"struct"},
    "INT[]": {"list"},
    "MAP(VARCHAR, INT)": {"map"},
    "STRUCT(b INT)[]": set[str](),
}  # fmt: skip


@pytest.mark.parametrize("kind", TAKEN)
def test_types_are_equal_or_widen(kind: str, lasting: Any, tmp_path: Path) -> None:
    """As they are, in a list, in a struct and as values of a map."""
    con, _ = lasting
    around = {
        "{}": lambda type: type,
        "{}[]": lambda type: pa.list_(type),
        "STRUCT(x {})": lambda type: pa.struct([("x", type)]),
        "MAP(VARCHAR, {})": lambda type: pa.map_(pa.string(), type),
    }
    for shape, type_of in around.items():
        con.execute(
            f"CREATE OR REPLACE TABLE s.t (c {shape.format(kind)}) "
            "TBLPROPERTIES ('format-version' = '3')"
        )
        for name, (type, _, options) in STORED.items():
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


def test_what_is_taken_is_read(con: icesql.Connection, tmp_path: Path) -> None:
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


def test_columns_that_folders_name_too(con: icesql.Connection, tmp_path: Path) -> None:
    con.execute("CREATE TABLE s.t (i BIGINT, p STRING, d DATE) PARTITIONED BY (p, d)")
    null = "__HIVE_DEFAULT_PARTITION__"
    day = date(2026, 1, 1)
    parquet(tmp_path / "same" / f"p=a/d={day}/x.parquet", i=[1, 2, 3], p=["a"] * 3, d=[day] * 3)
    parquet(
        tmp_path / "same" / f"p={null}/d={null}/x.parquet",
        pa.schema([("i", pa.int64()), ("p", pa.string()), ("d", pa.date32())]),
        i=[4], p=[None], d=[None],
    )  # fmt: skip
    parquet(tmp_path / "other" / f"p=a/d={day}/x.parquet", i=[1, 2, 3], p=["a", "a", "b"])
    parquet(tmp_path / "null" / f"p={null}/d={day}/x.parquet", i=[1, 2], p=[None, "b"])
    parquet(tmp_path / "some" / f"p=a/d={day}/x.parquet", i=[1, 2], d=[day, None])
    for folder, name in (("other", "p"), ("null", "p"), ("some", "d")):
        with pytest.raises(errors.DataError, match=f'column "{name}" holds other values'):
            add(con, tmp_path / folder)
    assert add(con, tmp_path / "same") == [(2, 2)]
    assert con.execute("SELECT p, d, count(*) FROM s.t GROUP BY ALL ORDER BY p").fetchall() == [
        ("a", day, 3), (None, None, 1),
    ]  # fmt: skip


def test_names_in_another_spelling(con: icesql.Connection, tmp_path: Path) -> None:
    """By a name mapping a column of another case is none: its values would be NULL for all."""
    con.execute("CREATE TABLE s.t (id BIGINT, v BIGINT)")
    upper = parquet(tmp_path / "upper.parquet", ID=[1], v=[2])
    with pytest.raises(errors.NotSupportedError, match='"ID" would not be read as "id"'):
        add(con, upper)
    both = parquet(tmp_path / "both.parquet", ID=[1], id=[3], other=[4])
    assert add(con, both) == [(1, 1)]
    assert con.execute("SELECT id, v FROM s.t").fetchall() == [(3, None)]
    # A mapping that somebody keeps by hand need not know a new column.
    con.execute("ALTER TABLE s.t SET TBLPROPERTIES ('schema.name-mapping.default' = '[]')")
    with pytest.raises(errors.NotSupportedError, match='"v" would not be read as "v"'):
        add(con, parquet(tmp_path / "v.parquet", v=[2]))


def test_ids_of_some_columns_only(con: icesql.Connection, tmp_path: Path) -> None:
    """Readers go by ids alone where there are any: what has none would be left out."""
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


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"i": ["x"]}, "and that of s.t is long"), ({"j": [1]}, 'no column "i", which is required'),
        ({"i": [1, None]}, 'column "i" is required, and has NULL'),
    ],
)  # fmt: skip
def test_files_that_do_not_fit(
    con: icesql.Connection, tmp_path: Path, columns: Any, told: str
) -> None:
    con.execute("CREATE TABLE s.t (i BIGINT NOT NULL)")
    path = parquet(tmp_path / "in" / "x.parquet", **columns)
    for explain in ("", "EXPLAIN "):
        with pytest.raises(errors.Error, match=told):
            con.execute(f"{explain}CALL system.add_files('s.t', '`parquet`.`{path}`')")
    assert path.exists()
    assert con.execute("SELECT count(*) FROM s.t.snapshots").fetchall() == [(0,)]


def test_files_of_another_table(con: icesql.Connection, tmp_path: Path) -> None:
    con.execute("CREATE TABLE s.t (a BIGINT, b BIGINT)")
    con.execute("CREATE TABLE s.u (b BIGINT, a BIGINT)")
    con.execute("INSERT INTO s.u VALUES (1, 2)")
    (path,) = con.execute("SELECT file_path FROM s.u.files").fetchone()
    with pytest.raises(errors.NotSupportedError, match="written for another one"):
        add(con, Path(path))
    con.execute("CREATE TABLE s.v (b BIGINT, a BIGINT, c BIGINT)")
    con.execute(f"CALL system.add_files('s.v', '`parquet`.`{path}`')")
    assert con.execute("SELECT a, b, c FROM s.v").fetchall() == [(2, 1, None)]


def test_folders_that_do_not_fit(con: icesql.Connection, tmp_path: Path) -> None:
    con.execute("CREATE TABLE s.t (i BIGINT, n INT) PARTITIONED BY (n)")
    parquet(tmp_path / "plain" / "x.parquet", i=[1])
    parquet(tmp_path / "other" / "q=1" / "x.parquet", i=[1])
    parquet(tmp_path / "text" / "n=one" / "x.parquet", i=[1])
    parquet(tmp_path / "big" / "n=99999999999" / "x.parquet", i=[1])
    (tmp_path / "csv" / "n=1").mkdir(parents=True)
    (tmp_path / "csv" / "n=1" / "x.csv").write_text("i\n1\n")
    (tmp_path / "empty").mkdir()
    for folder, told in (
        ("plain", "lies in no folder n="), ("other", "the table's are: n"), ("text", "is no int"),
        ("big", "is no int"), ("csv", "x.csv"), ("empty", "no files in"), ("none", "no files in"),
    ):  # fmt: skip
        with pytest.raises(errors.Error, match=told):
            add(con, tmp_path / folder)
    con.execute("CREATE OR REPLACE TABLE s.t (i BIGINT, n INT) PARTITIONED BY (bucket(4, n))")
    with pytest.raises(errors.NotSupportedError, match=r"partitioned by bucket\[4\]"):
        add(con, tmp_path / "plain")
    con.execute("CREATE OR REPLACE TABLE s.t (i BIGINT)")
    with pytest.raises(errors.ProgrammingError, match="not partitioned"):
        add(con, tmp_path / "text")
    for source, told in (("s.u", "it can be"), ("`orc`.`/x`", "add_files of orc")):
        with pytest.raises(errors.Error, match=told):
            con.execute(f"CALL system.add_files('s.t', '{source}')")


def test_only_files_that_sql_may_read(catalog: dict[str, Any], tmp_path: Path) -> None:
    path = parquet(tmp_path / "secret" / "x.parquet", i=[1])
    sql = f"CALL system.add_files('s.t', '`parquet`.`{path}`')"
    for files in (False, str(tmp_path / "open")):
        with icesql.connect(**catalog, files=files) as con:
            con.execute("CREATE SCHEMA IF NOT EXISTS s")
            con.execute("CREATE TABLE IF NOT EXISTS s.t (i BIGINT)")
            for each in (sql, sql.replace("secret", "open/../secret"), f"EXPLAIN {sql}"):
                with pytest.raises(errors.AccessDeniedError, match="files"):
                    con.execute(each)
    with icesql.connect(**catalog, tables_by_path=False, read_only=False) as con:
        for each in (
            "CALL system.add_files('s.t', '`parquet`.`s3://bucket/x`')",
            "CALL system.register_table('s.v', '/etc/x.metadata.json')",
        ):
            with pytest.raises(errors.AccessDeniedError, match="tables_by_path"):
                con.execute(each)


def test_a_failed_commit_leaves_the_files(
    con: icesql.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from icesql.catalog.directory import DirectoryCatalog

    con.execute("CREATE TABLE s.t (i BIGINT)")
    path = parquet(tmp_path / "x.parquet", i=[1])

    def refuse(*_: Any) -> None:
        raise errors.CatalogError("no")

    monkeypatch.setattr(DirectoryCatalog, "swap", refuse)
    with pytest.raises(errors.CatalogError):
        add(con, path)
    assert path.exists()


def test_added_files_stay_when_their_snapshot_expires(
    con: icesql.Connection, tmp_path: Path
) -> None:
    con.execute("CREATE TABLE s.t (i BIGINT)")
    path = parquet(tmp_path / "in" / "x.parquet", i=[1])
    add(con, path)
    con.execute("TRUNCATE TABLE s.t")
    con.execute("INSERT INTO s.t VALUES (2)")
    (counts,) = con.execute(
        "CALL system.expire_snapshots('s.t', older_than => now(), retain_last => 1)"
    ).fetchall()
    # They lie outside of the table's location.
    assert (counts[0], path.exists()) == (0, True)


# ------------------------------------------------------------------ register_table


@pytest.mark.parametrize("catalog", ["sqlite"], indirect=True)
def test_a_metadata_file_gets_a_name(con: icesql.Connection, tmp_path: Path) -> None:
    con.execute("CREATE TABLE s.t AS SELECT 1 AS i")
    file = max(tmp_path.rglob("*.metadata.json"))
    sql = f"CALL system.register_table('s.v', '{file}')"
    assert con.execute(f"EXPLAIN {sql}").fetchall()[0][:3] == ("set", "table", "s.v")
    with pytest.raises(errors.TableNotFoundError):
        con.execute("SELECT * FROM s.v")
    (head,) = con.execute("SELECT snapshot_id FROM s.t.snapshots").fetchone()
    assert con.execute(sql).fetchall() == [(head, 1, 1)]
    assert con.execute("SELECT * FROM s.v").fetchall() == [(1,)]
    with pytest.raises(errors.CatalogError, match="already"):
        con.execute(sql)
    with pytest.raises(errors.CatalogError, match="no namespace x"):
        con.execute(sql.replace("s.v", "x.v"))
    with pytest.raises(errors.Error):
        con.execute(f"CALL system.register_table('s.w', '{tmp_path}/none.metadata.json')")
    with pytest.raises(errors.TableNotFoundError):
        con.execute("SELECT * FROM s.w")


def test_folders_register_nothing(con: icesql.Connection, tmp_path: Path) -> None:
    con.execute("CREATE TABLE s.t AS SELECT 1 AS i")
    file = max(tmp_path.rglob("*.metadata.json"))
    with pytest.raises(errors.NotSupportedError, match="catalog of kind directory"):
        con.execute(f"CALL system.register_table('s.v', '{file}')")


@pytest.mark.parametrize("name", ["x.csv", "notes.txt", "000000_0", "a.orc"])
def test_another_file_in_the_folder_is_refused_in_words(
    con: icesql.Connection, tmp_path: Path, name: str
) -> None:
    con.execute("CREATE TABLE s.t (i BIGINT)")
    parquet(tmp_path / "in/x.parquet", i=[1])
    (tmp_path / "in" / name).write_text("i\n1\n")
    with pytest.raises(icesql.ProgrammingError, match=rf"{name} is no Parquet file, and add_files"):
        add(con, tmp_path / "in")
    (tmp_path / "in" / name).rename(tmp_path / "in" / f"_{name}")
    assert add(con, tmp_path / "in") == [(1, 1)]


def test_a_parquet_file_of_any_name_is_added(con: icesql.Connection, tmp_path: Path) -> None:
    con.execute("CREATE TABLE s.t (i BIGINT)")
    parquet(tmp_path / "in/x.parquet", i=[1]).rename(tmp_path / "in" / "000000_0")
    assert add(con, tmp_path / "in") == [(1, 1)]
