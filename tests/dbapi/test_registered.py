"""Rows that a program holds are read by SQL, by a name of the connection or of one statement."""

from __future__ import annotations

import decimal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet
import pytest

import icesql

VALUES = {"id": [3, 6, None], "Label": ["three", "six", None]}


def batches() -> pa.RecordBatchReader:
    table = pa.table(VALUES)
    return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=1))


class Streamed:
    """Of a library that is not known here."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table.__arrow_c_stream__(requested_schema)


HELD: dict[str, Any] = {
    "arrow": lambda: pa.table(VALUES),
    "batch": lambda: pa.record_batch(VALUES),
    "reader": batches,
    "dataset": lambda: ds.dataset(pa.table(VALUES)),
    "pandas": lambda: pandas.DataFrame(VALUES).astype({"id": "Int64"}),
    "polars": lambda: polars.DataFrame(VALUES),
    "lazy": lambda: polars.DataFrame(VALUES).lazy(),
    "stream": lambda: Streamed(pa.table(VALUES)),
    "columns": lambda: VALUES,
}


@pytest.fixture
def fresh(warehouse: Path) -> Iterator[icesql.Connection]:
    with icesql.connect(warehouse=warehouse) as made:
        yield made


@pytest.mark.parametrize("kind", list(HELD))
def test_each_kind_joins_with_tables(fresh: icesql.Connection, kind: str) -> None:
    fresh.register("held", HELD[kind]())
    sql = "SELECT o.id, h.label FROM shop.orders o JOIN held h USING (id) ORDER BY 1"
    assert fresh.execute(sql).fetchall() == [(3, "three"), (6, "six")]
    # As often as it is asked for.
    assert fresh.execute("SELECT count(*), count(id) FROM held").fetchall() == [(3, 2)]
    once = fresh.execute(
        "SELECT max(id) FROM once WHERE label < 't'", tables={"once": HELD[kind]()}
    )
    assert once.fetchall() == [(6,)]


def test_a_result_is_a_table(fresh: icesql.Connection) -> None:
    fresh.register(
        "regions", fresh.execute("SELECT region, count(*) AS n FROM shop.orders GROUP BY 1")
    )
    assert fresh.execute("SELECT sum(n) FROM regions").fetchall() == [(39,)]


def test_a_name_of_a_statement_is_gone_after_it(fresh: icesql.Connection) -> None:
    fresh.register("t", {"x": [1]})
    for value in (2, 3):
        assert fresh.execute("SELECT x FROM T", tables={"t": {"x": [value]}}).fetchall() == [
            (value,)
        ]
    assert fresh.execute("SELECT x FROM t").fetchall() == [(1,)]
    assert fresh.execute("SELECT count(*) FROM t", tables={"t": {"x": [1, 2]}}).fetchall() == [(2,)]
    assert fresh.execute("SELECT count(*) FROM t").fetchall() == [(1,)]
    fresh.unregister("T")
    with pytest.raises(icesql.TableNotFoundError):
        fresh.execute("SELECT x FROM t")


def test_a_name_goes_before_tables_and_after_ctes(fresh: icesql.Connection) -> None:
    tables = {"customers": {"x": [7]}}
    fresh.execute("USE shop")
    assert fresh.execute("SELECT * FROM customers", tables=tables).fetchall() == [(7,)]
    assert fresh.execute("SELECT count(*) FROM shop.customers", tables=tables).fetchall() == [(4,)]
    sql = "WITH customers AS (SELECT 8 AS x) SELECT * FROM customers"
    assert fresh.execute(sql, tables=tables).fetchall() == [(8,)]
    sql = "SELECT count(*) FROM customers WHERE EXISTS (SELECT 1 FROM customers c)"
    assert fresh.execute(sql, tables=tables).fetchall() == [(1,)]


def test_columns_are_told_and_named_apart(fresh: icesql.Connection) -> None:
    twice = pa.Table.from_arrays([pa.array([1]), pa.array(["x"])], names=["a", "A"])
    fresh.register("twice", twice)
    assert fresh.execute("SELECT * FROM twice").description is not None
    described = fresh.execute("DESCRIBE twice").fetchall()
    assert [row[:2] for row in described] == [("a", "bigint"), ("A_1", "varchar")]


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        (5, icesql.ProgrammingError, "int is no table"),
        ([{"x": 1}], icesql.ProgrammingError, "list is no table"),
        ({}, icesql.ProgrammingError, "without columns"),
        ({"x": [1], "y": [1, 2]}, icesql.DataError, "cannot be read as Arrow"),
        ({"x": [object()]}, icesql.DataError, "cannot be read as Arrow"),
    ],
)
def test_what_is_no_table_is_refused(
    fresh: icesql.Connection, rows: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        fresh.register("bad", rows)
    with pytest.raises(error, match=message):
        fresh.execute("SELECT 1", tables={"bad": rows})
    with pytest.raises(icesql.TableNotFoundError):
        fresh.execute("SELECT * FROM bad")


def test_names_are_checked(fresh: icesql.Connection) -> None:
    with pytest.raises(icesql.ProgrammingError, match="no name for a table"):
        fresh.register("", VALUES)
    fresh.register("known", VALUES)
    with pytest.raises(icesql.ProgrammingError, match="did you mean known"):
        fresh.unregister("knwn")
    fresh.register('odd "name"; DROP', VALUES)
    assert fresh.execute('SELECT count(*) FROM "odd ""name""; DROP"').fetchall() == [(3,)]


def test_a_reader_that_is_too_large_is_refused(fresh: icesql.Connection) -> None:
    fresh.execute("SET memory_limit = '64MB'")
    batch = pa.record_batch({"x": pa.array(range(1 << 20))})
    endless = pa.RecordBatchReader.from_batches(batch.schema, (batch for _ in range(1 << 20)))
    with pytest.raises(icesql.OperationalError, match="memory_limit"):
        fresh.register("endless", endless)


def test_only_the_local_engine_reads_them(fresh: icesql.Connection) -> None:
    fresh.register("held", VALUES)
    fresh.execute("SET engine = spark")
    with pytest.raises(icesql.NotSupportedError, match="local"):
        fresh.execute("SELECT * FROM held")


def test_a_dataset_is_read_with_the_filter_of_the_query(
    fresh: icesql.Connection, tmp_path: Path
) -> None:
    for part in range(3):
        (tmp_path / f"part={part}").mkdir()
        pa.parquet.write_table(pa.table({"x": [part]}), tmp_path / f"part={part}" / "f.parquet")
    (tmp_path / "part=2" / "f.parquet").write_bytes(b"not parquet")
    fresh.register("parts", ds.dataset(tmp_path, partitioning="hive", format="parquet"))
    assert fresh.execute("SELECT x FROM parts WHERE part = 1").fetchall() == [(1,)]


def test_a_reader_is_no_empty_table_when_it_is_given_again(fresh: icesql.Connection) -> None:
    reader = batches()
    sql = "SELECT count(*) FROM r"
    assert fresh.execute(sql, tables={"r": reader}).fetchall() == [(3,)]
    with pytest.raises(icesql.ProgrammingError, match="was read before"):
        fresh.execute(sql, tables={"r": reader})
    with pytest.raises(icesql.ProgrammingError, match="was read before"):
        fresh.register("r", reader)
    with pytest.raises(icesql.TableNotFoundError):
        fresh.execute(sql)


@pytest.mark.parametrize(
    "rows",
    [
        Streamed(None),
        polars.LazyFrame({"x": ["a"]}).select(polars.col("x").cast(polars.Int64)),
        polars.LazyFrame({"x": [1]}).select("nothing"),
        polars.Series("x", [1]),
    ],
)
def test_a_library_that_fails_to_make_the_rows_is_told_as_such(
    fresh: icesql.Connection, rows: Any
) -> None:
    with pytest.raises(icesql.DataError, match="cannot be read as Arrow"):
        fresh.register("failing", rows)


def test_a_name_of_any_kind_is_kept_and_forgotten(fresh: icesql.Connection) -> None:
    for name in ('a"b', "a.b", "Upper", "s.t", "select", "x\ny", "information_schema", "ünï"):
        fresh.register(name, VALUES)
        quoted = '"' + name.replace('"', '""') + '"'
        assert fresh.execute(f"SELECT count(*) FROM {quoted}").fetchall() == [(3,)]
        fresh.unregister(name)
        with pytest.raises(icesql.TableNotFoundError):
            fresh.execute(f"SELECT count(*) FROM {quoted}")


def test_nothing_is_kept_of_rows_that_were_unregistered(fresh: icesql.Connection) -> None:
    """500 times here; 3,000 kept no more."""

    def use() -> None:
        fresh.register("held", pa.table({"x": list(range(20_000))}))
        fresh.unregister("held")

    for _ in range(20):
        use()
    before = pa.total_allocated_bytes()
    for _ in range(500):
        use()
    assert pa.total_allocated_bytes() <= before + 1_000_000


def test_the_tables_of_a_connection_are_those_of_the_session_too(
    connection: icesql.Connection,
) -> None:
    stored = connection.tables()
    connection.register("Frame", {"id": [1]})
    connection.execute("CREATE TEMP TABLE kept AS SELECT 1 AS a")
    connection.execute("CREATE TEMP VIEW seen AS SELECT 1 AS a")
    assert connection.tables() == ["Frame", "kept", *stored]
    assert [connection.columns(name) for name in connection.tables()[:2]] == [["id"], ["a"]]
    connection.unregister("frame")
    assert connection.tables() == ["kept", *stored]


HALF = np.array([1.5, -2.25], dtype=np.float16)
WIDE = [decimal.Decimal("1.50"), None]


@pytest.mark.parametrize(
    ("given", "column", "wanted"),
    [
        (pa.array(HALF), "FLOAT", [1.5, -2.25]),
        (pa.array(HALF), "DOUBLE", [1.5, -2.25]),
        (pa.chunked_array([pa.array(HALF), pa.array(HALF[:0])]), "FLOAT", [1.5, -2.25]),
        (pa.array([HALF, None]), "FLOAT[]", [[1.5, -2.25], None]),
        (pa.array([{"a": HALF}, None], pa.struct([("a", pa.list_(pa.float16()))])),
         "STRUCT(a FLOAT[])", [{"a": [1.5, -2.25]}, None]),
        (pa.array([[("k", HALF[0])], None], pa.map_(pa.string(), pa.float16())),
         "MAP(VARCHAR, FLOAT)", [[("k", 1.5)], None]),
        (pa.array([HALF, HALF], pa.list_(pa.float16(), 2)), "FLOAT[]", [[1.5, -2.25]] * 2),
        (pa.array(WIDE, pa.decimal256(50, 2)), "DECIMAL(10, 2)", WIDE),
        (pa.array(WIDE, pa.decimal256(12, 2)), "DECIMAL(12, 2)", WIDE),
        (pa.array(WIDE, pa.decimal256(76, 30)), "DECIMAL(10, 2)", WIDE),
        (pa.array([WIDE, None], pa.list_(pa.decimal256(50, 2))), "DECIMAL(10, 2)[]", [WIDE, None]),
    ],
)  # fmt: skip
def test_types_that_no_engine_scans(
    tmp_path: Path, given: Any, column: str, wanted: list[Any]
) -> None:
    held = pa.table({"n": [1, 2], "v": given})
    with icesql.connect(warehouse=tmp_path) as con:
        con.execute("CREATE SCHEMA s")
        con.execute(f"CREATE TABLE s.t (n INT, v {column})")
        for rows in (held, held.to_reader(), Streamed(held)):
            con.execute("INSERT INTO s.t SELECT * FROM f", tables={"f": rows})
            found = con.execute("SELECT v FROM s.t ORDER BY n").fetchall()
            assert [value for (value,) in found] == wanted
            con.execute("DELETE FROM s.t")
        con.register("held", held)
        assert con.execute("SELECT count(v) FROM held").fetchone() == (2 - wanted.count(None),)


@pytest.mark.parametrize("bad", [0, 1, 6, 99])
@pytest.mark.parametrize("nested", [False, True])
def test_digits_that_do_not_fit_are_named(fresh: icesql.Connection, bad: int, nested: bool) -> None:
    values: list[Any] = [decimal.Decimal(number) for number in range(100)]
    values[bad] = decimal.Decimal(10) ** 40
    kind = pa.decimal256(60, 2)
    made = (
        pa.array([[each] for each in values], pa.list_(kind)) if nested else pa.array(values, kind)
    )
    for give in (lambda held: fresh.register("held", held), lambda held: fresh.execute(
        "SELECT 1 FROM held", tables={"held": held}
    )):  # fmt: skip
        with pytest.raises(
            icesql.DataError, match=rf'row {bad + 1}, column "v": .* CAST the column'
        ):
            give(pa.table({"v": made}))


def test_such_types_of_a_dataset_are_named(fresh: icesql.Connection) -> None:
    held = ds.dataset(pa.table({"v": pa.array(HALF)}))
    with pytest.raises(icesql.DataError, match=r'column "v" of the dataset .* CAST it to float'):
        fresh.register("held", held)
