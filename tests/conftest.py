"""Fixtures for all tests: the corpus, a warehouse, a clean environment."""

from __future__ import annotations

import os
import signal
from ast import literal_eval
from collections.abc import Iterator
from datetime import UTC, date, datetime
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
    from pyiceberg.transforms import IdentityTransform

    catalog = SqlCatalog("shop", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
    catalog.create_namespace("shop")
    orders = catalog.create_table(
        "shop.orders",
        _schema(
            "1 id long!, 2 region string, 3 amount decimal(10, 2), 4 ordered_at timestamptz, "
            "5 customer_id long, 6 ordered_on date"
        ),
        partition_spec=PartitionSpec(
            PartitionField(6, 1000, IdentityTransform(), "ordered_on"),
            PartitionField(2, 1001, IdentityTransform(), "region"),
        ),
    )
    schema = orders.schema().as_arrow()
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

    customers = catalog.create_table("shop.customers", _schema("1 id long, 2 name string"))
    names = ["Ada", "Grace", "Edsger", "Barbara"]
    customers.append(pa.table({"id": pa.array(range(4), pa.int64()), "name": names}))

    _write_types(catalog)


def _schema(text: str) -> Any:
    """PyIceberg's schema of the columns of a line."""
    from pyiceberg.schema import Schema

    from icesql.iceberg.metadata.writing import type_json
    from icesql.iceberg.types import StructType
    from tests.columns import columns

    return Schema.model_validate(type_json(StructType(columns(text))))


def _write_types(catalog: Any) -> None:
    import pyarrow as pa

    from tests.columns import array
    from tests.tables import read_table

    rows = read_table(__file__, "warehouse_types.tsv")
    text = ", ".join(f"{number} {row[0]} {row[1]}" for number, row in enumerate(rows, start=1))
    table = catalog.create_table("shop.types", _schema(text))
    arrays = {name: array(type, [literal_eval(value), None]) for name, type, value in rows}
    table.append(pa.table(arrays))
