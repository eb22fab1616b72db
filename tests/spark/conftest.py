"""A local Spark for these tests and for the data source's; skips visibly without PySpark or Java."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import icesql
from tests.writer.fields import fields
from tests.writer.table import TableWriter
from tests.writer.values import from_json

if TYPE_CHECKING:
    from tests.spark.processes import ConnectServer

NO_SPARK = "PySpark is not installed: the Spark engine is not tested"
NO_JAVA = "there is no Java: the Spark engine is not tested"

pytestmark = pytest.mark.spark


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark(items, Path(__file__).parent)


def mark(items: list[pytest.Item], folder: Path) -> None:
    """Mark every test below ``folder`` as one that starts Spark."""
    for item in items:
        if folder in Path(item.path).parents:
            item.add_marker(pytest.mark.spark)


def has_release(*oldest: int) -> bool:
    """True if PySpark is installed, and at least as new as (major, minor)."""
    try:
        return tuple(map(int, version("pyspark").split(".")[:2])) >= oldest
    except PackageNotFoundError:
        return False


def here(con: icesql.Connection, *statements: str) -> list[tuple[Any, ...]]:
    """Run statements on the local engine and return the last one's rows; then select Spark."""
    con.execute("SET engine = 'local'")
    try:
        for each in statements:
            cursor = con.execute(each)
        return [] if cursor.description is None else cursor.fetchall()
    finally:
        con.execute("SET engine = 'spark'")


@contextmanager
def lake(connect: Any, folder: Path, *statements: str) -> Iterator[icesql.Connection]:
    """A connection to a new warehouse with a schema ``s``, after statements on the local engine."""
    folder.mkdir(exist_ok=True)
    with connect(warehouse=str(folder)) as con:
        here(con, "CREATE SCHEMA s", *statements)
        yield con


# The feature of PySpark that format("icesql") requires.
SOURCES = "Python data sources"


def needs(release: str, *, why: str) -> pytest.MarkDecorator:
    """A mark for a test of a feature that older releases of PySpark lack; ``why`` names it."""
    here = has_release(*map(int, release.split(".")))
    return pytest.mark.skipif(not here, reason=f"needs PySpark {release}: {why}")


def is_of_newer_release(error: Exception) -> bool:
    """True if an error refuses something that requires a newer release than this PySpark."""
    named = re.search(r"needs PySpark (\d+)\.(\d+) or newer", str(error))
    return named is not None and not has_release(int(named[1]), int(named[2]))


@pytest.fixture(scope="session")
def spark_here() -> None:
    pytest.importorskip("pyspark", reason=NO_SPARK)
    if not os.environ.get("JAVA_HOME") and shutil.which("java") is None:
        pytest.skip(NO_JAVA)


@pytest.fixture(scope="session", autouse=True)
def every_query_is_spark_s() -> Iterator[None]:
    """Small tables would be read in one task; disable that, to test Spark's own part."""
    from icesql.engine.spark.scans import WHOLE, Scans

    before, Scans.ways = Scans.ways, Scans.ways - {WHOLE}
    yield
    Scans.ways = before


# Tests are too short for the optimising compiler: a sixth less processor time without it. Java then
# keeps only 48 MB for compiled code, and a JVM that has filled them ends.
QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"


@pytest.fixture(scope="session")
def connect(spark_here: None) -> Any:
    """``icesql.connect`` on a local Spark of two cores, which all tests share."""
    with pytest.MonkeyPatch.context() as patch:
        # Where Python finds the daemon.
        patch.chdir(Path(__file__).parents[2])
        daemon = "--conf spark.python.daemon.module=tests.spark.daemon"
        patch.setenv(
            "PYSPARK_SUBMIT_ARGS", f'{daemon} --driver-java-options "{QUICK_JVM}" pyspark-shell'
        )
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
    """A Spark Connect server for one module, whose tests may kill it."""
    from tests.spark.processes import ConnectServer, running

    for needed in ("grpc", "grpc_status", "google.rpc", "zstandard"):
        pytest.importorskip(needed, reason=f"Spark Connect needs {needed}: pip install '.[spark]'")
    if not has_release(4, 0) and "SPARK_CONNECT_JAR" not in os.environ:
        pytest.skip("PySpark 3.5 ships no Connect server: its jar is named by SPARK_CONNECT_JAR")
    with running(ConnectServer(tmp_path_factory.mktemp("connect"))) as made:
        yield made


@pytest.fixture(scope="module")
def session(connect: Any, warehouse: Path) -> Iterator[Any]:
    """A PySpark user's session on the shared Spark, where ``format("icesql")`` is registered."""
    with connect() as connection:
        connection.execute("SELECT 1").fetchall()
        from pyspark.sql import SparkSession

        session = SparkSession.builder.getOrCreate().newSession()
        if has_release(4, 0):
            icesql.register_spark(session, warehouse=warehouse)
        yield session


@pytest.fixture(params=["tasks", "fragments", "reader"])
def ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> frozenset[str]:
    """The ways of reading that Spark may choose: each alone, or only tasks."""
    from icesql.engine.spark.scans import FRAGMENTS, SPARK_READER, Scans

    named = {"tasks": (), "fragments": (FRAGMENTS,), "reader": (SPARK_READER,)}
    chosen = frozenset(named[request.param])
    monkeypatch.setattr(Scans, "ways", chosen)
    return chosen


def _value(kind: Any, value: Any) -> Any:
    match kind, value:
        case _, None:
            return None
        case {"type": "struct", "fields": fields}, _:
            return {each["name"]: _value(each["type"], value[each["name"]]) for each in fields}
        case {"type": "map"}, _:
            return [*map(tuple, value)]
    return from_json(kind, value)


# The fields of a schema with a column of each type, and rows by field name.
_TEXT = Path(__file__).with_name("all_types.jsonl").read_text(encoding="utf-8")
FIELDS, *_ROWS = map(json.loads, _TEXT.splitlines())
ROWS = [
    {each["name"]: _value(each["type"], row.get(each["name"])) for each in FIELDS} for row in _ROWS
]


@pytest.fixture(scope="session")
def all_types(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Metadata path of a table with a column of each type and two data files; only read."""
    table = TableWriter(tmp_path_factory.mktemp("all_types"), FIELDS)
    table.commit([table.data_file(ROWS[:3])])
    table.commit([table.data_file(ROWS[3:])])
    return str(table.metadata_path)


NUMBERS = fields("x long, k string")


@pytest.fixture(scope="session")
def sixteen(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Metadata path of a table of sixteen files of fifty rows; only read."""
    table = TableWriter(tmp_path_factory.mktemp("sixteen"), NUMBERS)
    table.commit(
        table.data_file([{"x": x, "k": f"k{x % 50 % 3}"} for x in range(start, start + 50)])
        for start in range(0, 800, 50)
    )
    return str(table.metadata_path)


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
        fields("n int, gone string"),
    )
    table.commit([table.data_file([{"n": n, "gone": "old"} for n in range(5)])])
    table.set_fields([*fields("added string", 3), *fields("x long")])
    table.commit([table.data_file([{"x": 2**40 + n, "added": f"a{n}"} for n in range(5)])])
    return str(table.metadata_path)


@pytest.fixture
def armed(tmp_path: Path) -> Path:
    """A folder with one file, by which one task is killed: see ``test_compaction.py``."""
    (tmp_path / "armed").mkdir()
    (tmp_path / "armed" / "0").touch()
    return tmp_path / "armed"


@pytest.fixture
def corrupt(tmp_path: Path) -> Path:
    """The data file, all zeros, of a table that is two folders above it."""
    table = TableWriter(tmp_path / "corrupt", NUMBERS)
    table.commit([table.data_file([{"x": 1, "k": "a"}])])
    (path,) = Path(table.folder).glob("data/*.parquet")
    path.write_bytes(b"PAR1" + b"\0" * (path.stat().st_size - 8) + b"PAR1")
    return path
