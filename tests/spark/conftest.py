"""A local Spark for these tests and for the data source's; skips visibly without PySpark or Java."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

import icesql
from tests.writer.table import TableWriter

if TYPE_CHECKING:
    from tests.spark.processes import ConnectServer

NO_SPARK = "PySpark is not installed: the Spark engine is not tested"
NO_JAVA = "there is no Java: the Spark engine is not tested"

pytestmark = pytest.mark.spark


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark(items, Path(__file__).parent)


def mark(items: list[pytest.Item], folder: Path) -> None:
    """Every test below ``folder`` starts Spark."""
    for item in items:
        if folder in Path(item.path).parents:
            item.add_marker(pytest.mark.spark)


def has_release(*oldest: int) -> bool:
    """Whether PySpark is here, and at least as new as (major, minor)."""
    try:
        return tuple(map(int, version("pyspark").split(".")[:2])) >= oldest
    except PackageNotFoundError:
        return False


# What format("icesql") is one of.
SOURCES = "Python data sources"


def needs(release: str, *, why: str) -> pytest.MarkDecorator:
    """The mark of a test of what older releases of PySpark lack; ``why`` names it."""
    here = has_release(*map(int, release.split(".")))
    return pytest.mark.skipif(not here, reason=f"needs PySpark {release}: {why}")


def is_of_newer_release(error: Exception) -> bool:
    """Whether an error refuses something by the name of a release that this PySpark is older than."""
    named = re.search(r"needs PySpark (\d+)\.(\d+) or newer", str(error))
    return named is not None and not has_release(int(named[1]), int(named[2]))


@pytest.fixture(scope="session")
def spark_here() -> None:
    pytest.importorskip("pyspark", reason=NO_SPARK)
    if not os.environ.get("JAVA_HOME") and shutil.which("java") is None:
        pytest.skip(NO_JAVA)


@pytest.fixture(scope="session", autouse=True)
def every_query_is_spark_s() -> Iterator[None]:
    """What is as small as these tables would run in one task: here Spark's own part is tested."""
    from icesql.engine.spark.scans import WHOLE, Scans

    before, Scans.ways = Scans.ways, Scans.ways - {WHOLE}
    yield
    Scans.ways = before


# Nothing here runs long enough to be worth optimising: a sixth less processor time in all. Without
# the second compiler Java keeps 48 MB for compiled code, and one that has filled them ends.
QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"


@pytest.fixture(scope="session")
def connect(spark_here: None) -> Any:
    """``icesql.connect`` on a local Spark of two cores, which all tests share."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_SUBMIT_ARGS", f'--driver-java-options "{QUICK_JVM}" pyspark-shell')
        icesql.connect(engine="spark", master="local[2]").execute("SELECT 1").close()

    def opened(**options: Any) -> icesql.Connection:
        return icesql.connect(engine="spark", master="local[2]", **options)

    return opened


@pytest.fixture
def spark(connect: Any) -> Iterator[icesql.Connection]:
    with connect() as connection:
        yield connection


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, spark_here: None) -> Iterator[ConnectServer]:
    """A Spark Connect server of a module's own, which its tests may kill."""
    from tests.spark.processes import ConnectServer, running

    for needed in ("grpc", "grpc_status", "google.rpc", "zstandard"):
        pytest.importorskip(needed, reason=f"Spark Connect needs {needed}: pip install '.[spark]'")
    if not has_release(4, 0) and "SPARK_CONNECT_JAR" not in os.environ:
        pytest.skip("PySpark 3.5 ships no Connect server: its jar is named by SPARK_CONNECT_JAR")
    with running(ConnectServer(tmp_path_factory.mktemp("connect"))) as made:
        yield made


@pytest.fixture(scope="module")
def session(connect: Any, warehouse: Path) -> Iterator[Any]:
    """A session of a PySpark user on the shared Spark, where ``format("icesql")`` is known."""
    with connect() as connection:
        connection.execute("SELECT 1").fetchall()
        from pyspark.sql import SparkSession

        session = SparkSession.builder.getOrCreate().newSession()
        if has_release(4, 0):
            icesql.register_spark(session, warehouse=warehouse)
        yield session


FIELDS = [
    {"id": 1, "name": "id", "required": False, "type": "int"},
    {"id": 2, "name": "i", "required": False, "type": "int"},
    {"id": 3, "name": "big", "required": False, "type": "long"},
    {"id": 4, "name": "f", "required": False, "type": "float"},
    {"id": 5, "name": "d", "required": False, "type": "double"},
    {"id": 6, "name": "dec", "required": False, "type": "decimal(10, 2)"},
    {"id": 7, "name": "s", "required": False, "type": "string"},
    {"id": 8, "name": "dt", "required": False, "type": "date"},
    {"id": 9, "name": "ts", "required": False, "type": "timestamp"},
    {"id": 10, "name": "tz", "required": False, "type": "timestamptz"},
    {"id": 11, "name": "bin", "required": False, "type": "binary"},
    {"id": 12, "name": "u", "required": False, "type": "uuid"},
    {"id": 13, "name": "t", "required": False, "type": "time"},
    {"id": 14, "name": "flag", "required": False, "type": "boolean"},
    {
        "id": 15,
        "name": "l",
        "required": False,
        "type": {"type": "list", "element-id": 16, "element": "int", "element-required": False},
    },
    {
        "id": 17,
        "name": "m",
        "required": False,
        "type": {
            "type": "map",
            "key-id": 18,
            "key": "string",
            "value-id": 19,
            "value": "int",
            "value-required": False,
        },
    },
    {
        "id": 20,
        "name": "st",
        "required": False,
        "type": {
            "type": "struct",
            "fields": [
                {"id": 21, "name": "x", "required": False, "type": "int"},
                {"id": 22, "name": "at", "required": False, "type": "time"},
            ],
        },
    },
    {"id": 23, "name": "wide", "required": False, "type": "decimal(38, 10)"},
]


def _row(number: int, **values: Any) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(field["name"] for field in FIELDS)
    return row | {"id": number} | values


ROWS = [
    _row(
        1, i=7, big=2**40, f=0.1, d=2.5, dec=Decimal("2.50"), s="hello", dt=date(2026, 1, 31),
        ts=datetime(2026, 1, 31, 23, 59, 56, 789000), tz=datetime(2026, 1, 31, 13, tzinfo=UTC),
        bin=b"\x00\xff", u=UUID(int=5), t=time(12, 30, 0, 5), flag=True, l=[1, None, 3],
        m=[("a", 1), ("b", None)], st={"x": 1, "at": time(1, 2, 3)},
        wide=Decimal("1234567890123456789012345678.0123456789"),
    ),
    _row(
        2, i=-3, big=-5, f=-0.0, d=float("nan"), dec=Decimal("-2.50"), s="a\\_b", dt=date(2024, 2, 29),
        ts=datetime(2024, 2, 29, 0, 0), tz=datetime(2024, 7, 1, 4, 0, 0, 500000, tzinfo=UTC),
        bin=b"", u=UUID(int=2**127), t=time(0), flag=False, l=[], m=[], st=None,
    ),
    _row(3),
    _row(
        4, i=0, big=0, f=1.5, d=0.0, dec=Decimal("0.00"), s="", dt=date(1969, 12, 31),
        ts=datetime(1969, 12, 31, 23, 59, 59, 1), tz=datetime(1969, 12, 31, 23, tzinfo=UTC),
        bin=b"ab", u=UUID(int=6), t=time(23, 59, 59, 999999), flag=True, l=[9], m=[("a", 4)],
        st={"x": None, "at": None},
    ),
    _row(
        5, i=2, big=9, f=float("nan"), d=float("inf"), dec=Decimal("3.49"), s="naïve Ünï",
        dt=date(2026, 11, 1), ts=datetime(2026, 11, 1, 1, 30),
        tz=datetime(2026, 11, 1, 5, 30, tzinfo=UTC), l=[5, 4], flag=None,
    ),
    _row(
        6, i=7, big=9, f=16777216.0, d=-1.5, dec=Decimal("99999999.99"), s="hello",
        dt=date(2025, 12, 28), ts=datetime(2025, 12, 28, 2, 0), flag=False,
        tz=datetime(2025, 12, 29, 2, 0, tzinfo=UTC), l=[3, 3], m=[("c", 3)],
        wide=Decimal("-0.0000000001"),
    ),
    _row(
        7, i=-1, big=-(2**53) - 1, f=float("-inf"), d=-0.0, dec=Decimal("-0.01"), s="A.b*C\n",
        dt=date(1582, 10, 10), ts=datetime(2024, 3, 10, 2, 30), wide=Decimal("2.5"),
        tz=datetime(2024, 11, 3, 6, 30, tzinfo=UTC), l=[2, None], flag=True,
    ),
    _row(
        8, i=100, big=2**53 + 1, f=3.4028234663852886e38, d=1e15, s="1.5e3",
        dt=date(1500, 1, 1), ts=datetime(1900, 1, 1), tz=datetime(1883, 11, 18, 17, tzinfo=UTC),
    ),
]  # fmt: skip


@pytest.fixture(scope="session")
def all_types(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Metadata path of a table with a column of each type and two data files; only read."""
    table = TableWriter(tmp_path_factory.mktemp("all_types"), FIELDS)
    table.commit([table.data_file(ROWS[:3])])
    table.commit([table.data_file(ROWS[3:])])
    return str(table.metadata_path)


NUMBERS = [
    {"id": 1, "name": "x", "required": False, "type": "long"},
    {"id": 2, "name": "k", "required": False, "type": "string"},
]


@pytest.fixture(scope="session")
def cluster_tables(tmp_path_factory: pytest.TempPathFactory, all_types: str) -> dict[str, str]:
    """Metadata paths: all types, twelve files of numbers, one with deletes, one that evolved."""
    folder = tmp_path_factory.mktemp("cluster_tables")
    numbers = TableWriter(folder / "numbers", NUMBERS)
    for start in (0, 30_000):
        numbers.commit(
            numbers.data_file([{"x": x, "k": f"k{x % 7}"} for x in range(first, first + 5_000)])
            for first in range(start, start + 30_000, 5_000)
        )
        if start == 0:
            numbers.tag("half")
    return {
        "t": all_types,
        "numbers": str(numbers.metadata_path),
        "deleted": _deleted(folder / "deleted"),
        "evolved": _evolved(folder / "evolved"),
    }


def _deleted(folder: Path) -> str:
    table = TableWriter(folder, NUMBERS)
    files = [
        table.data_file([{"x": x, "k": f"k{x % 3}"} for x in range(start, start + 100)])
        for start in (0, 100, 200)
    ]
    table.commit(files)
    path = files[0].record["file_path"]
    table.commit([table.position_deletes([(path, position) for position in range(0, 100, 2)])])
    table.commit([table.equality_deletes([{"k": "k1"}], [2])])
    table.commit([table.data_file([{"x": x, "k": "k1"} for x in range(300, 320)])])
    return str(table.metadata_path)


def _evolved(folder: Path) -> str:
    """An int column renamed and widened, one dropped, one added."""
    table = TableWriter(
        folder,
        [
            {"id": 1, "name": "n", "required": False, "type": "int"},
            {"id": 2, "name": "gone", "required": False, "type": "string"},
        ],
    )
    table.commit([table.data_file([{"n": n, "gone": "old"} for n in range(5)])])
    table.set_fields(
        [
            {"id": 3, "name": "added", "required": False, "type": "string"},
            {"id": 1, "name": "x", "required": False, "type": "long"},
        ]
    )
    table.commit([table.data_file([{"x": 2**40 + n, "added": f"a{n}"} for n in range(5)])])
    return str(table.metadata_path)


@pytest.fixture
def corrupt(tmp_path: Path) -> Path:
    """The data file, of nothing but zeros, of a table that lies two folders above."""
    table = TableWriter(tmp_path / "corrupt", NUMBERS)
    table.commit([table.data_file([{"x": 1, "k": "a"}])])
    (path,) = Path(table.folder).glob("data/*.parquet")
    path.write_bytes(b"PAR1" + b"\0" * (path.stat().st_size - 8) + b"PAR1")
    return path
