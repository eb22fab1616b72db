"""Fixtures for all tests: the corpus, a warehouse, a clean environment."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "icesql",
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("icesql")

# A shell gives what it runs in the background no Ctrl-C, and so would the tests their children.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ON_SPARK = (
    "tests/spark/",
    "tests/datasource/",
    "tests/security/test_no_code_on_spark.py",
    "tests/security/test_spark_tells_no_secrets.py",
)
NO_CORPUS = "ICESQL_CORPUS is not set: the tables that other systems wrote are not here"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="rewrite golden files with what came out; people read the diff",
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With ``-n``, one process runs all tests of a file, and one of them all that need Spark."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            # Two JVMs on a small machine would only wait for each other.
            return "spark" if file.startswith(ON_SPARK) else file

    return ByFile(config, log)


def pytest_report_header() -> str:
    return f"corpus: {os.environ.get('ICESQL_CORPUS') or NO_CORPUS}"


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting, catalog file or time zone of the person who runs the tests leaks in."""
    for name in list(os.environ):
        if name.startswith(("ICESQL_", "PYICEBERG_")) and name != "ICESQL_CORPUS":
            monkeypatch.delenv(name)


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-golden"))


@pytest.fixture(scope="session")
def corpus() -> Path:
    """Folder of the tables that other systems wrote; skips visibly without it."""
    folder = os.environ.get("ICESQL_CORPUS")
    if not folder:
        pytest.skip(NO_CORPUS)
    path = Path(folder)
    assert (path / "cases.jsonl").is_file(), f"ICESQL_CORPUS={folder} holds no cases.jsonl"
    return path


@pytest.fixture(scope="session")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a SQLite catalog ``catalog.db`` and three tables, written by PyIceberg.

    ``shop.orders``: partitioned by ordered_on and region; three appends and one delete;
    branch ``audit`` and tag ``opening`` at the first snapshot. ``shop.customers``:
    unpartitioned, one snapshot. ``shop.types``: one column of each type, one row of values and one
    of NULLs. Tests only read it.
    """
    folder = tmp_path_factory.mktemp("warehouse")
    _write_warehouse(folder)
    return folder


@pytest.fixture(autouse=True)
def nobody_changes_the_warehouse(request: pytest.FixtureRequest) -> Iterator[None]:
    """All tests of a process share ``warehouse``: a test that writes to it breaks others."""
    if "warehouse" not in request.fixturenames:
        yield
        return
    catalog: Path = request.getfixturevalue("warehouse") / "catalog.db"
    before = catalog.read_bytes()
    yield
    changed = catalog.read_bytes() != before
    assert not changed, "this test changed the warehouse of all tests; give it one of its own"


@pytest.fixture
def connection(warehouse: Path) -> Iterator[Any]:
    """An icesql connection on ``warehouse``."""
    import icesql

    with icesql.connect(warehouse=str(warehouse)) as opened:
        yield opened


def _write_warehouse(folder: Path) -> None:
    import pyarrow as pa
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.expressions import EqualTo
    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.transforms import IdentityTransform
    from pyiceberg.types import (
        DateType,
        DecimalType,
        LongType,
        NestedField,
        StringType,
        TimestamptzType,
    )

    catalog = SqlCatalog("shop", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
    catalog.create_namespace("shop")
    orders = catalog.create_table(
        "shop.orders",
        Schema(
            NestedField(1, "id", LongType(), required=True),
            NestedField(2, "region", StringType()),
            NestedField(3, "amount", DecimalType(10, 2)),
            NestedField(4, "ordered_at", TimestamptzType()),
            NestedField(5, "customer_id", LongType()),
            NestedField(6, "ordered_on", DateType()),
        ),
        partition_spec=PartitionSpec(
            PartitionField(6, 1000, IdentityTransform(), "ordered_on"),
            PartitionField(2, 1001, IdentityTransform(), "region"),
        ),
    )
    schema = pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            ("region", pa.string()),
            ("amount", pa.decimal128(10, 2)),
            ("ordered_at", pa.timestamp("us", tz="UTC")),
            ("customer_id", pa.int64()),
            ("ordered_on", pa.date32()),
        ]
    )
    for batch in range(3):
        rows = [
            {
                "id": batch * 20 + number,
                "region": ("eu", "us", None)[number % 3],
                "amount": None if number == 7 else Decimal(f"{number}.{batch}0"),
                "ordered_at": datetime(2026, 1, 1 + batch, number, tzinfo=UTC),
                "customer_id": number % 4,
                "ordered_on": date(2026, 1, 1 + batch),
            }
            for number in range(20)
        ]
        orders.append(pa.Table.from_pylist(rows, schema))
        if batch == 0:
            first = orders.current_snapshot()
            assert first is not None
            orders.manage_snapshots().create_tag(first.snapshot_id, "opening").create_branch(
                first.snapshot_id, "audit"
            ).commit()
    orders.delete(EqualTo("region", "us"))

    customers = catalog.create_table(
        "shop.customers",
        Schema(NestedField(1, "id", LongType()), NestedField(2, "name", StringType())),
    )
    names = ["Ada", "Grace", "Edsger", "Barbara"]
    customers.append(pa.table({"id": pa.array(range(4), pa.int64()), "name": names}))

    _write_types(catalog)


def _write_types(catalog: Any) -> None:
    import uuid

    import pyarrow as pa
    from pyiceberg import types
    from pyiceberg.schema import Schema

    columns: list[tuple[str, Any, Any, Any]] = [
        ("flag", types.BooleanType(), pa.bool_(), True),
        ("small", types.IntegerType(), pa.int32(), -7),
        ("big", types.LongType(), pa.int64(), 2**40),
        ("single", types.FloatType(), pa.float32(), 1.5),
        ("double", types.DoubleType(), pa.float64(), float("inf")),
        ("price", types.DecimalType(9, 2), pa.decimal128(9, 2), Decimal("12.30")),
        ("day", types.DateType(), pa.date32(), date(2026, 1, 31)),
        ("clock", types.TimeType(), pa.time64("us"), time(12, 30, 0, 5)),
        ("moment", types.TimestampType(), pa.timestamp("us"), datetime(2026, 1, 31, 12, 30)),
        (
            "instant",
            types.TimestamptzType(),
            pa.timestamp("us", tz="UTC"),
            datetime(2026, 1, 31, 12, 30, tzinfo=UTC),
        ),
        ("text", types.StringType(), pa.string(), "naïve, \"quoted\"\nand 'cut'"),
        ("key", types.UUIDType(), pa.uuid(), uuid.UUID(int=5).bytes),
        ("code", types.FixedType(3), pa.binary(3), b"abc"),
        ("blob", types.BinaryType(), pa.binary(), b"\x00\xff"),
        (
            "tags",
            types.ListType(100, types.StringType(), element_required=False),
            pa.list_(pa.string()),
            ["a", None],
        ),
        (
            "place",
            types.StructType(
                types.NestedField(101, "lat", types.DoubleType()),
                types.NestedField(102, "name", types.StringType()),
            ),
            pa.struct([("lat", pa.float64()), ("name", pa.string())]),
            {"lat": 47.5, "name": "Basel"},
        ),
        (
            "counts",
            types.MapType(103, types.StringType(), 104, types.IntegerType(), value_required=False),
            pa.map_(pa.string(), pa.int32()),
            [("x", 1), ("y", None)],
        ),
    ]
    table = catalog.create_table(
        "shop.types",
        Schema(
            *(
                types.NestedField(number, name, kind, required=False)
                for number, (name, kind, _, _) in enumerate(columns, start=1)
            )
        ),
    )
    arrays = {}
    for name, _, arrow, value in columns:
        if name == "key":
            storage = pa.array([value, None], pa.binary(16))
            arrays[name] = pa.ExtensionArray.from_storage(pa.uuid(), storage)
        else:
            arrays[name] = pa.array([value, None], arrow)
    table.append(pa.table(arrays))
