"""Times in nanoseconds beside other times: answers by integers in Python, in zones with an offset."""

from __future__ import annotations

import operator
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
from tests.writer.table import TableWriter

DAY = 86_400_000_000_000
NEW_YEAR = 1_577_836_800_000_000_000
# The last of Vienna's summer: 00:30 in UTC is 02:30 for the first time, 01:30 is it again.
AUTUMN = 1_729_989_000_000_000_000
NANOS = [
    -(2**63) + 1, -DAY - 1, -1_000, -999, -1, 0, 1, 999, 1_000, NEW_YEAR - 1, NEW_YEAR, NEW_YEAR + 1,
    NEW_YEAR + 1_000, NEW_YEAR + DAY, AUTUMN, AUTUMN + 3_600_000_000_000, 2**63 - 1, None,
]  # fmt: skip
FIELDS = [
    {"id": 1, "name": "id", "required": False, "type": "int"},
    {"id": 2, "name": "nz", "required": False, "type": "timestamptz_ns"},
    {"id": 3, "name": "n", "required": False, "type": "timestamp_ns"},
    {"id": 4, "name": "z", "required": False, "type": "timestamptz"},
    {"id": 5, "name": "ts", "required": False, "type": "timestamp"},
]
COMPARE = {"<": operator.lt, "<=": operator.le, "=": operator.eq, ">": operator.gt,
           ">=": operator.ge, "<>": operator.ne}  # fmt: skip


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
def zoned(request: pytest.FixtureRequest, connect: Any, nanos: str) -> Iterator[Any]:
    with connect(settings={"timezone": request.param}) as opened:
        opened.register_table("t", nanos)
        yield opened


def ids(connection: Any, condition: str, *parameters: Any) -> list[int]:
    rows = connection.execute(f"SELECT id FROM t WHERE {condition}", parameters).fetchall()
    return sorted(row[0] for row in rows)


def holding(test: Callable[[int], bool]) -> list[int]:
    return [at for at, value in enumerate(NANOS) if value is not None and test(value)]


def start_of_2020(connection: Any) -> int:
    """Midnight in the session's zone."""
    zone = ZoneInfo(connection.settings.timezone)
    return int(datetime(2020, 1, 1, tzinfo=zone).timestamp()) * 10**9


INSTANTS = {
    "TIMESTAMPTZ '2020-01-01 00:00:00+00'": NEW_YEAR,
    "TIMESTAMPTZ '2020-01-01 00:00:00.000001+00:00'": NEW_YEAR + 1_000,
    "TIMESTAMPTZ '1500-01-01 00:00:00+00'": -(10**19),
    "TIMESTAMPTZ '9000-01-01 00:00:00+00'": 10**20,
    "'2020-01-01 00:00:00.000000001+00'": NEW_YEAR + 1,
    "'2020-01-01 01:00:00.00000000+01:00'": NEW_YEAR,
    "CAST('1969-12-31 23:59:59.999999999Z' AS TIMESTAMPTZ_NS)": -1,
}


def test_instants_are_compared(zoned: Any) -> None:
    conditions = [
        (f"nz {sign} {sql}", holding(lambda value, c=compare, w=wanted: c(value, w)))
        for sql, wanted in INSTANTS.items()
        for sign, compare in COMPARE.items()
    ]
    # All in one question: each row's bits.
    found = zoned.execute(
        f"SELECT id, {', '.join(f'({each})' for each, _ in conditions)} FROM t ORDER BY id"
    ).fetchall()
    for column, (condition, expected) in enumerate(conditions, 1):
        assert [row[0] for row in found if row[column]] == expected, condition
        assert found[-1][column] is None
    for condition, expected in conditions[::7]:
        assert ids(zoned, condition) == expected, condition
    assert ids(zoned, "nz < now()") == holding(lambda value: value < 1_790_000_000 * 10**9)
    assert ids(zoned, "nz > ?", datetime(2020, 1, 1, tzinfo=UTC)) == holding(
        lambda value: value > NEW_YEAR
    )


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


def test_columns_of_two_precisions_meet(zoned: Any) -> None:
    whole = holding(lambda value: value % 1000 == 0)
    assert ids(zoned, "nz = z") == whole
    assert ids(zoned, "n = ts") == whole
    assert ids(zoned, "nz > z") == holding(lambda value: value % 1000 > 0)
    pairs = zoned.execute(
        "SELECT DISTINCT a.id FROM t a JOIN t b ON a.nz = b.z ORDER BY 1"
    ).fetchall()
    assert [row[0] for row in pairs] == whole


def test_casts_cut_down(zoned: Any) -> None:
    rows = zoned.execute(
        "SELECT id, CAST(nz AS TIMESTAMPTZ), CAST(n AS TIMESTAMP), CAST(n AS DATE) FROM t "
        "WHERE id BETWEEN 1 AND 15 ORDER BY id"
    ).fetchall()
    for at, instant, local, day in rows:
        assert (instant - datetime(1970, 1, 1, tzinfo=UTC)) // (instant.resolution) == (
            NANOS[at] // 1000  # type: ignore[operator]
        )
        assert local == instant.astimezone(UTC).replace(tzinfo=None)
        assert day == local.date()


def test_what_is_no_time_is_refused_by_name(zoned: Any) -> None:
    for condition in (
        "nz > 'tomorrow'",
        "nz > concat('2020', '')",
        "coalesce(nz, '2020-01-01') IS NULL",
    ):
        with pytest.raises(icesql.Error) as caught:
            ids(zoned, condition)
        assert "BIGINT" not in str(caught.value)


@pytest.mark.parametrize("zone", ["UTC", "Europe/Vienna"])
def test_values_are_those_of_the_local_engine(
    connect: Any, nanos: str, zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = "SELECT nz, n, z, ts FROM t WHERE id > 0 ORDER BY id"
    found = []
    for ways in (frozenset({FRAGMENTS}), frozenset()):
        monkeypatch.setattr(Scans, "ways", ways)
        with connect(settings={"timezone": zone}) as spark:
            spark.register_table("t", nanos)
            found.append(spark.execute(sql).fetchall())
    with icesql.connect(settings={"timezone": zone}) as local:
        local.register_table("t", nanos)
        expected = local.execute(sql).fetchall()

    def shown(rows: Any) -> Any:
        return [[(type(v), str(v), type(getattr(v, "tzinfo", None))) for v in row] for row in rows]

    for rows in found:
        assert shown(rows) == shown(expected)
    kind = type(UTC) if zone == "UTC" else ZoneInfo
    assert isinstance(found[0][0][0].tzinfo, kind)
    assert isinstance(found[0][0][2].tzinfo, kind)
    moved = found[0][0][0].astimezone(UTC)
    assert moved == expected[0][0]


@pytest.mark.parametrize("zoned", [False, True])
def test_files_of_nanoseconds_under_microseconds(connect: Any, tmp_path: Path, zoned: bool) -> None:
    """A value is the microsecond below it, read by tasks and for a partial result."""
    base = 1_700_000_000_000_000_000
    values = [base + each for each in (-2_001, -1, 0, 1, 999, 1_999)] + [-1_001, -1, 0, 1, None]
    fields = [{"id": 1, "name": "id", "required": False, "type": "int"},
              {"id": 2, "name": "ts", "required": False, "type": "timestamptz" if zoned else "timestamp"}]  # fmt: skip
    kind = pa.timestamp("ns", "UTC" if zoned else None)
    table = TableWriter(tmp_path, fields)
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
