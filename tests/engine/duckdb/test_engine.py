"""How the local engine runs: streaming, cancelling, limits, and what it cannot access."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pyarrow as pa
import pytest

import icesql
from tests.writer.fields import fields
from tests.writer.table import TableWriter

FIELDS = fields("x long, s string")
# Hours of work for any engine, with almost no rows.
ENDLESS = "SELECT count(*) FROM t a, t b, t c, t d, t e WHERE a.x + b.x + c.x + d.x + e.x = 3"


@pytest.fixture
def table(tmp_path):
    made = TableWriter(tmp_path, FIELDS)
    made.commit([made.data_file([{"x": i, "s": f"row {i}"} for i in range(1000)])])
    return made


@pytest.fixture
def con(table):
    with icesql.connect() as connection:
        connection.register_table("t", table.metadata_path)
        yield connection


def cancelled(connection, sql=ENDLESS):
    """Cancel a running fetch."""
    cursor = connection.execute(sql)
    threading.Timer(0.4, cursor.cancel).start()
    with pytest.raises(icesql.QueryCancelledError):
        cursor.fetchall()


@pytest.mark.parametrize("reader", ["auto", "arrow"])
def test_cancel_stops_a_query_and_keeps_the_connection(con, reader):
    con.execute(f"SET local_reader = {reader}")
    cancelled(con)
    assert con.execute("SELECT count(*) FROM t").fetchall() == [(1000,)]


def test_cancel_stops_a_query_whose_reader_is_blocked(con, monkeypatch):
    import icesql.read.task

    released, seen = threading.Event(), []

    def blocked(*_args):
        seen.append(released.wait(60))
        yield from ()

    monkeypatch.setattr(icesql.read.task, "read_file", blocked)
    # Larger than a scan that is read at once while binding, so the query waits for the stream.
    monkeypatch.setattr("icesql.engine.duckdb.relations.relation_builder.SMALL_SCAN_BYTES", 0)
    con.execute("SET local_reader = arrow")
    try:
        cancelled(con, "SELECT sum(x) FROM t")
        assert seen == []
    finally:
        released.set()


def test_timeout_stops_a_query_and_names_the_setting(con):
    con.execute("SET query_timeout = 0.3")
    with pytest.raises(icesql.QueryCancelledError, match="query_timeout"):
        con.execute(ENDLESS).fetchall()
    con.execute("RESET query_timeout")
    assert con.execute("SELECT max(x) FROM t").fetchone() == (999,)


def test_ctrl_c_stops_a_query_and_the_next_one_runs(table):
    script = textwrap.dedent(
        f"""
        import icesql, time
        con = icesql.connect()
        con.register_table("t", {table.metadata_path!r})
        con.execute("SELECT max(x) FROM t").fetchall()
        try:
            print("ready", flush=True)  # whenever Ctrl-C comes from here on, it stops this
            con.execute({ENDLESS!r}).fetchall()
        except KeyboardInterrupt:
            print("stopped", flush=True)
        print(con.execute("SELECT max(x) FROM t").fetchall(), flush=True)
        con.close()
        """
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.7)
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "stopped\n"
    out, err = process.communicate(timeout=100)
    assert out == "[(999,)]\n"
    assert err == ""
    assert process.returncode == 0


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM glob('/etc/*')",
        "SELECT * FROM '/etc/passwd'",
        "COPY (SELECT 1) TO '/tmp/icesql-leak.csv'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "ATTACH '/tmp/icesql-leak.db'",
        "SELECT getenv('HOME')",
        "SELECT * FROM duckdb_settings()",
        "SELECT * FROM sniff_csv('/etc/passwd')",
        "SELECT * FROM query('SELECT 1')",
        "PRAGMA database_list",
        "SET enable_external_access = true",
        "SELECT x, (SELECT count(*) FROM read_blob('/etc/passwd')) FROM t",
    ],
)
def test_nothing_but_tables_can_be_reached(con, sql):
    with pytest.raises((icesql.NotSupportedError, icesql.ProgrammingError)):
        con.execute(sql).fetchall()
    assert not os.path.exists("/tmp/icesql-leak.csv")


def test_variables_of_the_caller_are_no_tables(con):
    secret = pa.table({"password": ["x"]})
    with pytest.raises(icesql.TableNotFoundError, match="secret"):
        con.execute("SELECT * FROM secret").fetchall()
    assert secret.num_rows == 1


def test_duckdb_itself_is_closed_off(con):
    con.execute("SELECT x FROM t").fetchall()
    instance = con._session.engines.started["local"].pool._current
    cursor = instance.cursor()
    try:
        import duckdb

        for sql in (
            "SELECT * FROM read_text('/etc/passwd')",
            "COPY (SELECT 1) TO '/tmp/icesql-leak.csv'",
            "SET enable_external_access = true",
        ):
            with pytest.raises(duckdb.Error):
                cursor.execute(sql).fetchall()
    finally:
        instance.release(cursor)


def test_two_results_of_one_connection_are_read_in_turns(con):
    first = con.execute("SELECT x FROM t ORDER BY x")
    second = con.execute("SELECT x FROM t ORDER BY x DESC")
    assert [first.fetchone(), second.fetchone(), first.fetchone()] == [(0,), (999,), (1,)]


def test_a_second_table_elsewhere_is_read_while_the_first_result_is_open(con, tmp_path_factory):
    other = TableWriter(tmp_path_factory.mktemp("other"), FIELDS)
    other.commit([other.data_file([{"x": 5, "s": "o"}])])
    first = con.execute("SELECT x FROM t ORDER BY x")
    assert first.fetchone() == (0,)
    con.register_table("o", other.metadata_path)
    assert con.execute("SELECT count(*), min(o.x) FROM t JOIN o USING (x)").fetchall() == [(1, 5)]
    assert len(first.fetchall()) == 999


@pytest.mark.parametrize("reader", ["auto", "arrow"])
def test_one_table_may_stand_several_times_in_a_query(con, reader):
    con.execute(f"SET local_reader = {reader}")
    sql = """
        WITH big AS (SELECT x FROM t WHERE x > 990)
        SELECT count(*) FROM big a JOIN big b USING (x) WHERE x < (SELECT max(x) FROM t)
    """
    assert con.execute(sql).fetchall() == [(8,)]


def test_arrow_batches_have_the_declared_schema(con):
    reader = con.execute(
        "SELECT x, s, x / 2 AS half, sum(x) OVER () AS total FROM t"
    ).arrow_reader()
    assert reader.schema == pa.schema(
        [
            ("x", pa.int64()),
            ("s", pa.string()),
            ("half", pa.float64()),
            ("total", pa.decimal128(38, 0)),
        ]
    )
    assert reader.read_all().num_rows == 1000


def test_what_looks_like_a_call_leaves_the_cursor_free_for_arrow(con):
    # "KEY (k)" and "t (k, v)" are looked up in DuckDB's list of functions.
    recursive = "WITH RECURSIVE t (k, v) USING KEY (k) AS (SELECT 1, 0 UNION SELECT k, v + 1 FROM t WHERE v < 1)"
    assert con.execute(f"{recursive} FROM t").arrow().to_pylist() == [{"k": 1, "v": 1}]


def test_a_result_is_read_as_rows_or_as_arrow_not_both(con):
    cursor = con.execute("SELECT x FROM t")
    cursor.fetchone()
    with pytest.raises(icesql.InterfaceError, match="rows"):
        cursor.arrow()


def test_a_sum_beyond_64_bits_is_whole_and_one_beyond_38_digits_an_error(con):
    cursor = con.execute("SELECT sum(9223372036854775807) FROM t")
    assert cursor.fetchall() == [(9223372036854775807 * 1000,)]
    cursor = con.execute(f"SELECT sum({10**37}::HUGEINT) FROM t WHERE x < 10")
    with pytest.raises(icesql.DataError, match="more than 38 digits"):
        cursor.fetchall()


def test_bad_casts_of_rows_are_data_errors(con):
    cursor = con.execute("SELECT CAST(s AS INT) FROM t")
    with pytest.raises(icesql.DataError, match="row"):
        cursor.fetchall()


def test_rows_that_failed_have_not_ended(con):
    cursor = con.execute(
        "SELECT CAST(CASE WHEN i < 2000000 THEN '1' ELSE 'x' END AS INT) FROM range(3000000) r(i)"
    )
    cursor.fetchmany(10)
    for _ in range(2):
        with pytest.raises(icesql.DataError):
            cursor.fetchall()


def test_damaged_data_file_is_named(tmp_path):
    table = TableWriter(tmp_path, FIELDS)
    written = table.data_file([{"x": i, "s": "y" * 50} for i in range(5000)])
    table.commit([written])
    path = written.record["file_path"]
    with open(path, "r+b") as file:
        file.seek(200)
        file.write(b"\0" * 3000)
    with icesql.connect() as con:
        con.register_table("t", table.metadata_path)
        cursor = con.execute("SELECT sum(x), max(s) FROM t")
        with pytest.raises(icesql.CorruptFileError) as caught:
            cursor.fetchall()
        assert path in str(caught.value)


def test_times_in_the_session_zone(tmp_path):
    table = TableWriter(tmp_path, fields("ts timestamptz"))
    table.commit([table.data_file(pa.table(
        [pa.array([0], pa.timestamp("us", "UTC"))],
        schema=pa.schema([pa.field("ts", pa.timestamp("us", "UTC"),
                                   metadata={"PARQUET:field_id": "1"})])))])  # fmt: skip
    with icesql.connect(timezone="Europe/Berlin") as con:
        con.register_table("t", table.metadata_path)
        ((value, text),) = con.execute("SELECT ts, CAST(ts AS VARCHAR) FROM t").fetchall()
        assert value.isoformat() == "1970-01-01T01:00:00+01:00"
        assert text == "1970-01-01 01:00:00+01"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Conversion Error: Could not convert", icesql.DataError),
        ("Out of Range Error: Overflow", icesql.DataError),
        ("Out of Memory Error: could not allocate", icesql.ScanLimitError),
        ("INTERRUPT Error: Interrupted!", icesql.QueryCancelledError),
        ("FATAL Error: invalidated", icesql.InternalError),
    ],
)
def test_what_duckdb_says_through_an_arrow_stream_is_the_same_error(text, expected):
    from icesql.engine.duckdb.errors import is_fatal, translate

    error = OSError(text)
    assert type(translate(error, ())) is expected
    assert is_fatal(error) == text.startswith("FATAL")
