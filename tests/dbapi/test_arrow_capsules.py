"""A result goes to other libraries by the Arrow PyCapsule interface, and in batches of one size."""

from __future__ import annotations

import polars
import pyarrow as pa
import pytest

import icesql

ROWS = "SELECT range AS n, 'row ' || range AS s FROM range(5000)"


def test_pyarrow_takes_a_cursor(connection: icesql.Connection) -> None:
    table = pa.table(connection.execute(ROWS))
    assert table.column_names == ["n", "s"]
    assert table.to_pylist()[4999] == {"n": 4999, "s": "row 4999"}


def test_the_schema_is_there_before_any_row(connection: icesql.Connection) -> None:
    cursor = connection.execute(ROWS)
    assert pa.schema(cursor) == pa.schema([("n", pa.int64()), ("s", pa.string())])
    assert len(cursor.fetchall()) == 5000


def test_polars_takes_a_cursor(connection: icesql.Connection) -> None:
    frame = polars.DataFrame(connection.execute(ROWS))
    assert frame["n"].sum() == 4999 * 2500


def test_a_polars_frame_has_integers_for_sums_that_fit(connection: icesql.Connection) -> None:
    frame = connection.execute(
        "SELECT sum(range) AS small, sum(range::hugeint * 10000000000000000000) AS large,"
        " NULL AS nothing, [1, NULL] AS list, DATE '2026-01-02' AS day FROM range(3)"
    ).pl()
    assert frame.schema["small"] == polars.Int64
    assert frame["small"].to_list() == [3]
    assert [int(value) for value in frame["large"]] == [3 * 10**19]
    assert frame["nothing"].to_list() == [None]
    assert frame["list"].to_list() == [[1, None]]
    assert str(frame["day"][0]) == "2026-01-02"


def test_a_closed_cursor_gives_no_stream(connection: icesql.Connection) -> None:
    cursor = connection.execute(ROWS)
    cursor.close()
    with pytest.raises(icesql.InterfaceError, match="the cursor is closed"):
        pa.table(cursor)
    with pytest.raises(icesql.InterfaceError, match="the cursor is closed"):
        pa.schema(cursor)


@pytest.mark.parametrize("size", [1, 7, 1024, 5000, 10_000])
def test_batches_have_the_size_that_is_asked_for(connection: icesql.Connection, size: int) -> None:
    rows = "SELECT range AS n FROM range(5000)" if size > 1 else "SELECT range AS n FROM range(20)"
    batches = list(connection.execute(rows).fetch_record_batches(size))
    count = sum(batch.num_rows for batch in batches)
    assert all(batch.num_rows == size for batch in batches[:-1])
    assert 0 < batches[-1].num_rows <= size
    assert [n for batch in batches for n in batch.column(0).to_pylist()] == list(range(count))


def test_an_empty_result_has_no_batch(connection: icesql.Connection) -> None:
    reader = connection.execute("SELECT 1 AS one WHERE false").fetch_record_batches()
    assert reader.schema.names == ["one"]
    assert list(reader) == []


def test_a_batch_has_rows(connection: icesql.Connection) -> None:
    with pytest.raises(icesql.ProgrammingError, match="cannot have 0 rows"):
        connection.execute("SELECT 1").fetch_record_batches(0)
