"""Nanosecond times beside other times: answers by integers in Python, in zones with an offset."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icesql
from icesql.engine.spark.scans import FRAGMENTS, Scans
from tests.spark.comparison import both
from tests.writer.fields import fields
from tests.writer.table import TableWriter

DAY = 86_400_000_000_000
NEW_YEAR = 1_577_836_800_000_000_000
# The last hour of Vienna's summer time: 00:30 in UTC is the first 02:30 there, 01:30 the second.
AUTUMN = 1_729_989_000_000_000_000
NANOS = [
    -(2**63) + 1, -DAY - 1, -1_000, -999, -1, 0, 1, 999, 1_000, NEW_YEAR - 1, NEW_YEAR, NEW_YEAR + 1,
    NEW_YEAR + 1_000, NEW_YEAR + DAY, AUTUMN, AUTUMN + 3_600_000_000_000, 2**63 - 1, None,
]  # fmt: skip
FIELDS = fields("id int, nz timestamptz_ns, n timestamp_ns, z timestamptz, ts timestamp")
# The local engine's answers, which its own tests compare with integers in Python.
INSTANTS = """
TIMESTAMPTZ '2020-01-01 00:00:00+00'
TIMESTAMPTZ '2020-01-01 00:00:00.000001+00:00'
TIMESTAMPTZ '1500-01-01 00:00:00+00'
TIMESTAMPTZ '9000-01-01 00:00:00+00'
'2020-01-01 00:00:00.000000001+00'
'2020-01-01 01:00:00.00000000+01:00'
CAST('1969-12-31 23:59:59.999999999Z' AS TIMESTAMPTZ_NS)
""".strip().splitlines()
CONDITIONS = [
    f"nz {sign} {each}" for each in INSTANTS for sign in ("<", "<=", "=", ">", ">=", "<>")
]
STATEMENTS = [
    # All conditions in one query, as booleans for each row.
    f"SELECT id, {', '.join(f'({each})' for each in CONDITIONS)} FROM t ORDER BY id",
    *(f"SELECT id FROM t WHERE {each} ORDER BY id" for each in CONDITIONS[::7]),
    "SELECT id, nz = z, n = ts, nz > z, nz < now() FROM t ORDER BY id",
    "SELECT DISTINCT a.id FROM t a JOIN t b ON a.nz = b.z ORDER BY 1",
    "SELECT id, CAST(nz AS TIMESTAMPTZ), CAST(n AS TIMESTAMP), CAST(n AS DATE) FROM t "
    "WHERE id BETWEEN 1 AND 15 ORDER BY id",
    "SELECT nz, n, z, ts FROM t WHERE id > 0 ORDER BY id",
]


@pytest.fixture(scope="module")
def nanos(tmp_path_factory: pytest.TempPathFactory) -> str:
    table = TableWriter(tmp_path_factory.mktemp("nanos"), FIELDS, version=3)
    rows = [
        {"id": at, "nz": value, "n": value, **dict.fromkeys(("z", "ts"), value and value // 1000)}
        for at, value in enumerate(NANOS)
    ]
    table.commit([table.data_file(rows[:9]), table.data_file(rows[9:])])
    return str(table.metadata_path)


@pytest.fixture(params=["UTC", "Europe/Vienna"])
def engines(request: pytest.FixtureRequest, connect: Any, nanos: str) -> Iterator[Any]:
    with both(connect, {"t": nanos}, timezone=request.param) as opened:
        yield opened


@pytest.fixture
def zoned(engines: Any) -> Any:
    return engines[1]


def ids(connection: Any, condition: str, *parameters: Any) -> list[int]:
    rows = connection.execute(f"SELECT id FROM t WHERE {condition}", parameters).fetchall()
    return sorted(row[0] for row in rows)


def holding(test: Callable[[int], bool]) -> list[int]:
    return [at for at, value in enumerate(NANOS) if value is not None and test(value)]


def start_of_2020(connection: Any) -> int:
    """Midnight in the session's zone, in nanoseconds."""
    zone = ZoneInfo(connection.settings.timezone)
    return int(datetime(2020, 1, 1, tzinfo=zone).timestamp()) * 10**9


@pytest.mark.parametrize("ways", [(), (FRAGMENTS,)], ids=["tasks", "partial"])
def test_values_and_comparisons_are_those_of_the_local_engine(
    engines: Any, ways: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    local, zoned = engines
    monkeypatch.setattr(Scans, "ways", frozenset(ways))
    for sql in STATEMENTS:
        assert shown(zoned.execute(sql)) == shown(local.execute(sql)), sql
    assert ids(zoned, "nz > ?", datetime(2020, 1, 1, tzinfo=UTC)) == holding(
        lambda value: value > NEW_YEAR
    )
    ((value, *_),) = zoned.execute("SELECT nz, z FROM t WHERE id = 5").fetchall()
    assert isinstance(value.tzinfo, type(UTC) if zoned.settings.timezone == "UTC" else ZoneInfo)


def shown(cursor: Any) -> Any:
    """Rows with the types of their values; instants in one zone."""
    return [
        [(type(each), str(each.astimezone(UTC) if getattr(each, "tzinfo", None) else each))
         for each in row]
        for row in cursor.fetchall()
    ]  # fmt: skip


def test_dates_and_local_times_are_those_of_the_session(zoned: Any) -> None:
    start = start_of_2020(zoned)
    for sql in ("DATE '2020-01-01'", "TIMESTAMP '2020-01-01 00:00:00'", "'2020-01-01'"):
        assert ids(zoned, f"nz >= {sql}") == holding(lambda value: value >= start), sql
        assert ids(zoned, f"n >= {sql}") == holding(lambda value: value >= NEW_YEAR), sql
        assert ids(zoned, f"n = {sql}") == holding(lambda value: value == NEW_YEAR), sql
    assert ids(zoned, "n BETWEEN DATE '2020-01-01' AND '2020-01-01 00:00:00.000000001'") == [10, 11]
    assert ids(zoned, "n IN ('2020-01-01 00:00:00.000000001', TIMESTAMP '1970-01-01')") == [5, 11]
    assert ids(zoned, "nz NOT IN (DATE '2020-01-01')") == holding(lambda value: value != start)
    assert ids(zoned, "n = TIMESTAMP_NS '1969-12-31 23:59:59.999999999'") == [4]
    zone = ZoneInfo(zoned.settings.timezone)

    def instant(value: int) -> int:
        naive = datetime.fromtimestamp(value // 10**9, tz=UTC).replace(tzinfo=zone, fold=1)
        return int(naive.timestamp()) * 10**9 + value % 10**9

    within = [at for at, value in enumerate(NANOS) if value is not None and 0 < at < 16]
    found = ids(zoned, "n > TIMESTAMPTZ '2020-01-01 00:00:00+00' AND id BETWEEN 1 AND 15")
    assert found == [at for at in within if instant(NANOS[at]) > NEW_YEAR]


def test_what_is_no_time_is_refused_by_name(zoned: Any) -> None:
    for condition in (
        "nz > 'tomorrow'",
        "nz > concat('2020', '')",
        "coalesce(nz, '2020-01-01') IS NULL",
    ):
        with pytest.raises(icesql.Error) as caught:
            ids(zoned, condition)
        assert "BIGINT" not in str(caught.value)


@pytest.mark.parametrize("zoned", [False, True])
def test_files_of_nanoseconds_under_microseconds(connect: Any, tmp_path: Path, zoned: bool) -> None:
    """A value is rounded down to microseconds, in tasks and for a partial result."""
    base = 1_700_000_000_000_000_000
    values = [base + each for each in (-2_001, -1, 0, 1, 999, 1_999)] + [-1_001, -1, 0, 1, None]
    kind = pa.timestamp("ns", "UTC" if zoned else None)
    table = TableWriter(tmp_path, fields(f"id int, ts timestamp{'tz' * zoned}"))
    data = pa.table([pa.array(range(len(values)), pa.int32()), pa.array(values, kind)],
                    schema=pa.schema([pa.field("id", pa.int32(), metadata={"PARQUET:field_id": "1"}),
                                      pa.field("ts", kind, metadata={"PARQUET:field_id": "2"})]))  # fmt: skip
    path = f"{tmp_path}/data/nanos.parquet"
    pq.write_table(data, path, row_group_size=2, version="2.6")
    table.commit([table.existing_file(path, path, len(values))])
    micros = [None if each is None else each // 1000 for each in values]
    with connect(timezone="UTC") as spark:
        spark.register_table("t", table.metadata_path)
        found = spark.execute("SELECT id, epoch(ts), ts FROM t ORDER BY id").fetchall()
        epoch = datetime(1970, 1, 1, tzinfo=UTC if zoned else None)
        assert [ts and (ts - epoch) // timedelta(microseconds=1) for _, _, ts in found] == micros
        least = epoch + timedelta(microseconds=base // 1000)
        sql = f"SELECT id FROM t WHERE ts >= '{least}' ORDER BY id"
        wanted = [(at,) for at, each in enumerate(micros) if each and each >= base // 1000]
        assert spark.execute(sql).fetchall() == wanted
        sql = "SELECT count(DISTINCT ts), count(*) FROM t"
        assert spark.execute(sql).fetchall() == [(len({*micros} - {None}), len(values))]
