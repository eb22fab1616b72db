"""Results as files: values of every type are equal when read again, whichever engine wrote them."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icesql
from icesql.dbapi.cursor import write_rows
from icesql.engine.duckdb.copy import copy_stream
from icesql.engine.result import StaticResult
from icesql.engine.writing import write
from icesql.file_format import FileFormat, named_format
from icesql.storage.new_files import OutputFile
from tests.tables import read_cases
from tests.writer.fields import fields

# (SQL, its type when it is read again)
VALUES = dict(read_cases(__file__, "written_values.tsv", 1))
QUERY = "SELECT " + ", ".join(f"{sql} AS {name}" for name, (sql, _) in VALUES.items())


@pytest.fixture(scope="module")
def con():
    with icesql.connect(timezone="Asia/Tokyo") as connection:
        yield connection


def save(cursor, path: Path, form: FileFormat) -> Path:
    with OutputFile(str(path), overwrite=True) as file:
        write_rows(cursor, form, file)
    return path


def text_of(con, sql: str, form: str | FileFormat, path: Path) -> str:
    named = named_format(form) if isinstance(form, str) else form
    return save(con.execute(sql), path, named).read_bytes().decode()


@pytest.fixture(scope="module")
def engine():
    """DuckDB, with a table of the values that it computes."""
    own = duckdb.connect()
    own.execute("SET TimeZone = 'Asia/Tokyo'")
    own.execute(
        f"CREATE TABLE made AS SELECT {', '.join(f'({s})::{t} AS {n}' for n, (s, t) in VALUES.items())}"
    )
    return own


@pytest.mark.parametrize("form", ["csv", "tsv", "json", "jsonl", "parquet"])
def test_every_type_reads_back_as_the_value_it_was(con, engine, form: str, tmp_path: Path) -> None:
    path = save(con.execute(QUERY), tmp_path / f"x.{form}", named_format(form))
    types = "{" + ", ".join(f"{name}: '{kind}'" for name, (_, kind) in VALUES.items()) + "}"
    read = {
        "csv": f"read_csv('{path}', header = true, columns = {types}, allow_quoted_nulls = false)",
        "tsv": f"read_csv('{path}', header = true, columns = {types}, allow_quoted_nulls = false, delim = '\t')",
        "json": f"read_json('{path}', format = 'array', columns = {types})",
        "jsonl": f"read_json('{path}', format = 'newline_delimited', columns = {types})",
        "parquet": f"read_parquet('{path}')",
    }[form]
    different = [
        name
        for name in VALUES
        if engine.execute(
            f"SELECT a.{name} IS NOT DISTINCT FROM b.{name}, typeof(a.{name}) = typeof(b.{name}) "
            f"FROM made a, {read} b"
        ).fetchone()
        != (True, True)
    ]
    if "json" in form:
        # DuckDB's reader reads bytes as text, and in 2.0.0 numbers as doubles; ours are exact.
        inexact = ["price"] if duckdb.__version__ == "2.0.0" else []
        assert different == [*inexact, "bytes"]
        told = json.loads(
            path.read_text().strip().removeprefix("[").removesuffix("]"), parse_float=Decimal
        )
        assert told["price"] == Decimal("12345678901234567890.1234567890")
        assert bytes.fromhex(told["bytes"]) == b'\x00\xff\\,"a'
    else:
        assert different == []


def test_arrow_is_the_declared_table(con, tmp_path: Path) -> None:
    path = save(con.execute(QUERY), tmp_path / "x.arrow", named_format("arrow"))
    with pa.ipc.open_file(path) as read:
        assert str(read.read_all()) == str(con.execute(QUERY).arrow())  # NaN is not NaN


def test_csv_is_to_the_byte_what_duckdb_writes(con, engine, tmp_path: Path) -> None:
    engine.execute(f"COPY made TO '{tmp_path}/theirs.csv'")
    assert (
        text_of(con, QUERY, "csv", tmp_path / "ours.csv").encode()
        == (tmp_path / "theirs.csv").read_bytes()
    )


def test_json_is_what_duckdb_writes_but_for_numbers_that_it_loses(con, engine, tmp_path) -> None:
    engine.execute(f"COPY made TO '{tmp_path}/theirs.json'")
    theirs = json.loads((tmp_path / "theirs.json").read_text(), parse_constant=str)
    ours = json.loads(text_of(con, QUERY, "jsonl", tmp_path / "ours"), parse_float=Decimal)
    changed = {name for name in VALUES if ours[name] != theirs[name]}
    assert changed == {"single", "price", "tiny", "bytes"}
    assert (ours["single"], ours["price"]) == (
        Decimal("0.1"),
        Decimal("12345678901234567890.1234567890"),
    )
    assert (ours["nan"], ours["less"], ours["place"]["lat"]) == (
        "NaN",
        "-Infinity",
        Decimal("47.50"),
    )
    assert float(ours["tiny"]) == theirs["tiny"]


NESTED = """SELECT {'a': ['nan'::DOUBLE, NULL, 1e20], 'b': [{'c': 1.10::DECIMAL(4,2)}, NULL]} AS s,
    MAP {{'k': 1}: [1.5::FLOAT]} AS m, row(1, 'z') AS t, union_value(n := 2.50::DECIMAL(4,2)) AS u,
    to_json({'x': [1]}) AS j, NULL::INTEGER[] AS l, NULL::MAP(INTEGER, INTEGER) AS e, [[]]::INTEGER[][] AS n"""


def test_nested_values_in_json(con, tmp_path: Path) -> None:
    assert text_of(con, NESTED, "jsonl", tmp_path / "x") == (
        '{"s":{"a":["NaN",null,1e+20],"b":[{"c":1.10},null]},"m":{"{\'k\': 1}":[1.5]},"t":[1,"z"],'
        '"u":{"n":2.50},"j":{"x":[1]},"l":null,"e":null,"n":[[]]}\n'
    )


def test_columns_of_one_name_are_told_apart(con, tmp_path: Path) -> None:
    sql = 'SELECT 1 AS a, 2 AS a, 3 AS "A", 4 AS "a""b", 5 AS a_1'
    assert json.loads(text_of(con, sql, "jsonl", tmp_path / "x")) == {
        "a": 1, "a_1": 2, "A": 3, 'a"b': 4, "a_1_1": 5,
    }  # fmt: skip
    assert text_of(con, sql, "csv", tmp_path / "x").splitlines()[0] == 'a,a_1,A_2,"a""b",a_1_1'
    path = save(con.execute(sql), tmp_path / "x.parquet", named_format("parquet"))
    assert pq.read_schema(path).names == ["a", "a_1", "A_2", 'a"b', "a_1_1"]
    with pytest.raises(icesql.ProgrammingError, match='two columns are called "a"'):
        save(con.execute(sql), tmp_path / "x", named_format("arrow"))


def test_a_null_and_an_empty_text_are_two_things_in_csv(con, tmp_path: Path) -> None:
    sql = "SELECT * FROM (VALUES ('', NULL), (NULL, 'NULL'), ('a', '\"')) AS v(a, b)"
    assert text_of(con, sql, "csv", tmp_path / "x") == 'a,b\n"",\n,NULL\na,""""\n'
    assert text_of(con, "SELECT NULL AS a", "csv", tmp_path / "x") == "a\n\n"


def test_no_rows_leave_a_header_an_empty_list_and_a_schema(con, tmp_path: Path) -> None:
    sql = "SELECT 1 AS a, 'x' AS b WHERE false"
    assert text_of(con, sql, "csv", tmp_path / "x") == "a,b\n"
    assert text_of(con, sql, "jsonl", tmp_path / "x") == ""
    assert json.loads(text_of(con, sql, "json", tmp_path / "x")) == []
    path = save(con.execute(sql), tmp_path / "x.parquet", named_format("parquet"))
    assert (pq.read_table(path).num_rows, pq.read_schema(path).names) == (0, ["a", "b"])


class Bytes:
    """A sink in memory."""

    error = None

    def __init__(self) -> None:
        self.pieces: list[bytes] = []

    @property
    def data(self) -> bytes:
        return b"".join(self.pieces)

    def write(self, data: bytes) -> None:
        self.pieces.append(data)

    def restart(self) -> bool:
        self.pieces.clear()
        return True


KINDS = [
    ("b", "boolean"),
    ("n", "bigint"),
    ("t", "varchar"),
    ("at", "timestamptz"),
    ('"q,', "varchar"),
]


@pytest.mark.parametrize("form", ["csv", "tsv", "json", "jsonl"])
def test_what_needs_no_engine_is_written_as_the_engine_would(con, form: str) -> None:
    """Every character below U+0250 in a text, and times with and without fractions and offsets."""
    from datetime import datetime, timedelta, timezone

    times = [
        datetime(2026, 1, 2, 3, 4, 5, micros, tzinfo=timezone(timedelta(hours=9)))
        for micros in (0, 500_000, 123_450, 1)
    ]
    texts = [
        None,
        "",
        "NULL",
        "null",
        "#",
        *map(chr, range(0x250)),
        "a\\u001b\x1b\\",
        "\u2028",
        "🦆",
    ]
    rows = [
        (None if i % 7 == 3 else i % 2 == 0, i, text, times[i % 4], text)
        for i, text in enumerate(texts)
    ]
    query = con.cursor()._session
    own, engines = Bytes(), Bytes()
    from icesql.context import QueryContext

    context = QueryContext.begin(query.state.settings)
    assert write(StaticResult(KINDS, rows), query.engines, named_format(form), own, context) == len(
        rows
    )
    static = StaticResult(KINDS, rows)
    pool, reader = query.engines.local().pool, static.arrow_reader()
    copy_stream(pool, reader, static.columns, named_format(form), engines, context)
    assert own.data == engines.data


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_rows_of_another_engine_are_written_alike(con, form: str, tmp_path: Path) -> None:
    """An engine such as Spark returns Arrow batches of the declared schema."""
    from icesql.context import QueryContext

    cursor = con.execute(QUERY)
    columns, session = cursor._result.columns, cursor._session
    own = save(con.execute(QUERY), tmp_path / "own", named_format(form))
    sink = Bytes()
    context = QueryContext.begin(session.state.settings)
    pool, reader = session.engines.local().pool, cursor.arrow_reader()
    count = copy_stream(pool, reader, columns, named_format(form), sink, context)
    assert count == 1
    if form == "parquet":
        read = [pq.read_table(each) for each in (pa.BufferReader(sink.data), own)]
        assert list(map(str, read[0].columns)) == list(map(str, read[1].columns))
    else:
        assert sink.data == own.read_bytes()


def test_a_large_result_goes_out_in_pieces_and_in_order(con) -> None:
    sink = Bytes()
    sql = "SELECT i, repeat('x', 20) AS t FROM range(1000000) AS r(i)"
    assert write_rows(con.execute(sql), FileFormat("csv", (("header", False),)), sink) == 1_000_000
    assert len(sink.pieces) > 2
    lines = sink.data.decode().splitlines()
    assert [int(line.partition(",")[0]) for line in lines] == list(range(1_000_000))


def test_what_stops_a_sink_is_what_the_query_says(con) -> None:
    class Full(Bytes):
        def write(self, data: bytes) -> None:
            self.error = BrokenPipeError(32, "nobody reads")
            raise self.error

    for form in ("csv", "jsonl", "parquet"):
        with pytest.raises(BrokenPipeError):
            write_rows(con.execute("SELECT 1 AS a"), named_format(form), Full())
    assert con.execute("SELECT 1").fetchall() == [(1,)]


def test_a_result_is_written_once_and_not_after_its_rows_were_fetched(con) -> None:
    cursor = con.execute("SELECT 1 AS a")
    write_rows(cursor, named_format("csv"), Bytes())
    assert cursor.rowcount == 1
    for again in (
        cursor.fetchall,
        cursor.arrow,
        lambda: write_rows(cursor, named_format("csv"), Bytes()),
    ):
        with pytest.raises(icesql.InterfaceError, match="already being read as a file"):
            again()


def test_an_error_while_rows_are_written_is_icesqls(con) -> None:
    for form in ("csv", "jsonl", "parquet"):
        with pytest.raises(icesql.DataError):
            write_rows(
                con.execute("SELECT (9 - i)::VARCHAR::DATE FROM range(9) r(i)"),
                named_format(form),
                Bytes(),
            )


def test_struct_fields_that_differ_in_case_only(con, tmp_path: Path) -> None:
    from tests.writer.table import TableWriter

    made = TableWriter(tmp_path / "t", fields("s struct<a long, A long>"))
    made.commit([made.data_file([{"s": {"a": 1, "A": 2}}])])
    sql = f"SELECT s FROM iceberg_scan('{tmp_path}/t')"
    assert text_of(con, sql, "jsonl", tmp_path / "x") == '{"s":{"a":1,"A":2}}\n'
    for form in ("csv", "parquet"):
        with pytest.raises(icesql.UnsupportedSqlError, match='column "s" in format'):
            save(con.execute(sql), tmp_path / "y", named_format(form))


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_lists_of_a_statement_without_an_engine_are_lists(con, warehouse, form, tmp_path) -> None:
    with icesql.connect(warehouse=warehouse) as connection:
        told = text_of(connection, "SHOW ALL TABLES", form, tmp_path / "x")
    if form == "jsonl":
        rows = [json.loads(line) for line in told.splitlines()]
        assert [row["column_names"] for row in rows if row["name"] == "customers"] == [
            ["id", "name"]
        ]
    else:
        assert ',"[id, name]",' in told


def fails_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB fails to read a file when half of the rows are written."""
    from icesql.engine.duckdb.engine import LocalResult

    copy, failed = LocalResult._copy, []

    def fails(self, form, sink):
        if not failed:
            failed.append(True)
            sink.write(b"half of a ro")
            error = icesql.DataError("Failed to read file")
            error.while_reading = True
            raise error
        return copy(self, form, sink)

    monkeypatch.setattr(LocalResult, "_copy", fails)


def test_a_file_that_duckdb_cannot_read_begins_the_output_anew(
    warehouse, tmp_path, monkeypatch
) -> None:
    sql = "SELECT id, name FROM shop.customers ORDER BY id"
    with icesql.connect(warehouse=warehouse) as connection:
        whole = text_of(connection, sql, "csv", tmp_path / "whole")
        fails_once(monkeypatch)
        cursor = connection.execute(sql)
        assert save(cursor, tmp_path / "x", named_format("csv")).read_text() == whole
        assert "read again without DuckDB's Parquet reader" in cursor.notes[-1]


def test_bytes_that_have_gone_out_are_not_followed_by_other_rows(warehouse, monkeypatch) -> None:
    class Gone(Bytes):
        def restart(self) -> bool:
            return False

    sink = Gone()
    with icesql.connect(warehouse=warehouse) as connection:
        fails_once(monkeypatch)
        with pytest.raises(icesql.DataError):
            write_rows(
                connection.execute("SELECT * FROM shop.customers"), named_format("csv"), sink
            )
    assert sink.data == b"half of a ro"
