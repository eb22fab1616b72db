"""The tables of the user cases: many small files, months, wide, nested, strings, evolved, small.

Written once by PyIceberg, as another program's tables are, in an environment of its own: to write
partitions it needs ``pyiceberg-core``.

    python user_tables.py FOLDER LINEITEM
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CATEGORIES, DAYS, ROWS_OF_FILE = 20, 40, 5_000
WIDE_COLUMNS, WIDE_ROWS = 500, 40_000
# 2023-11-15 in days since 1970.
FIRST_DAY, MICROS_OF_DAY = 19_676, 86_400_000_000


def write(folder: Path, lineitem: Path) -> None:
    """All tables, in the namespace ``u`` of ``catalog.db``. ``lineitem`` is a Parquet file."""
    from pyiceberg.catalog.sql import SqlCatalog

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "catalog.db").unlink(missing_ok=True)
    catalog = SqlCatalog("u", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
    catalog.create_namespace("u")
    _events(catalog)
    _small(catalog)
    _month(catalog, lineitem)
    for name, make in {"wide": _wide, "nested": _nested, "strings": _strings}.items():
        _append(catalog, name, make())
    _evolved(catalog)


def _append(catalog: Any, name: str, parts: Iterator[Any]) -> Any:
    table = None
    for rows in parts:
        if table is None:
            table = catalog.create_table(f"u.{name}", schema=rows.schema)
        table.append(rows)
    return table


def _events(catalog: Any) -> None:
    """800 files, one for each category and day; ids and times follow each other."""
    import numpy as np
    import pyarrow as pa
    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.transforms import DayTransform, IdentityTransform

    chance = np.random.default_rng(5)
    notes = pa.array([f"note {number}" for number in range(97)])
    count = CATEGORIES * DAYS * ROWS_OF_FILE
    file, within = np.divmod(np.arange(count), ROWS_OF_FILE)
    micros = (FIRST_DAY + file // CATEGORIES) * MICROS_OF_DAY + within * 17_000_000
    names = pa.array([f"cat{number:02}" for number in range(CATEGORIES)])
    rows = pa.table(
        {
            "id": np.arange(count),
            "ts": pa.array(micros).cast(pa.timestamp("us")),
            "cat": names.take(pa.array(file % CATEGORIES)),
            "value": np.round(chance.random(count) * 100, 2),
            "note": notes.take(pa.array(chance.integers(0, 97, count))),
        }
    )
    schema = _iceberg_schema(rows.schema)
    spec = PartitionSpec(
        PartitionField(schema.find_field("cat").field_id, 1000, IdentityTransform(), "cat"),
        PartitionField(schema.find_field("ts").field_id, 1001, DayTransform(), "ts_day"),
    )
    catalog.create_table("u.events", schema=schema, partition_spec=spec).append(rows)


def _iceberg_schema(schema: Any) -> Any:
    from pyiceberg.io.pyarrow import _pyarrow_to_schema_without_ids
    from pyiceberg.schema import assign_fresh_schema_ids

    return assign_fresh_schema_ids(_pyarrow_to_schema_without_ids(schema))


def _small(catalog: Any) -> None:
    import pyarrow as pa

    names = [f"cat{number:02}" for number in range(CATEGORIES)]
    groups = [number // 2 for number in range(CATEGORIES)]
    _append(catalog, "cats", iter([pa.table({"cat": names, "grp": groups})]))
    days = pa.array([FIRST_DAY + number for number in range(DAYS)], pa.int32()).cast(pa.date32())
    marked = [number in (7, 8, 9) for number in range(DAYS)]
    _append(catalog, "days", iter([pa.table({"day": days, "marked": marked})]))


def _month(catalog: Any, lineitem: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.transforms import MonthTransform

    columns = (
        "l_orderkey", "l_partkey", "l_quantity", "l_extendedprice", "l_discount", "l_shipdate",
        "l_comment",
    )  # fmt: skip
    rows = pq.read_table(lineitem, columns=list(columns))
    # Without the field ids and the views of another writer, of which PyIceberg makes no schema.
    plain = [
        (each.name, pa.string() if pa.types.is_string_view(each.type) else each.type)
        for each in rows.schema
    ]
    rows = rows.cast(pa.schema(plain))
    schema = _iceberg_schema(rows.schema)
    field = schema.find_field("l_shipdate").field_id
    spec = PartitionSpec(PartitionField(field, 1000, MonthTransform(), "month"))
    catalog.create_table("u.months", schema=schema, partition_spec=spec).append(rows)


def _wide() -> Iterator[Any]:
    import numpy as np
    import pyarrow as pa

    chance = np.random.default_rng(6)
    for _ in range(4):
        columns = {
            f"c{number:03}": chance.integers(0, 1 << (number % 20 + 4), WIDE_ROWS)
            for number in range(WIDE_COLUMNS)
        }
        yield pa.table(columns)


def _nested() -> Iterator[Any]:
    import numpy as np
    import pyarrow as pa

    chance, count = np.random.default_rng(7), 250_000
    for part in range(4):
        lengths = chance.integers(0, 6, count)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        values = pa.array(chance.integers(0, 1000, offsets[-1]).astype(np.int32))
        inner = pa.StructArray.from_arrays(
            [
                pa.array(chance.random(count)),
                pa.array([f"s{number}" for number in range(50)]).take(
                    pa.array(chance.integers(0, 50, count))
                ),
            ],
            ["price", "name"],
        )
        outer = pa.StructArray.from_arrays(
            [pa.array(chance.integers(0, 100, count).astype(np.int32)), inner], ["kind", "item"]
        )
        yield pa.table(
            {
                "id": np.arange(part * count, (part + 1) * count),
                "rec": outer,
                "tags": pa.ListArray.from_arrays(pa.array(offsets), values),
            }
        )


def _strings() -> Iterator[Any]:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    chance, count = np.random.default_rng(8), 500_000
    words = [
        f"{first}{last}" for first in ("al", "bo", "ca", "du") for last in ("ra", "min", "tok")
    ]
    for _ in range(4):
        parts = [pa.array(words).take(pa.array(chance.integers(0, 12, count))) for _ in range(5)]
        text = pc.binary_join_element_wise(*parts, " ")
        key = pc.binary_join_element_wise(parts[0], parts[1], parts[2], "-")
        yield pa.table({"text": text, "key": key, "size": chance.integers(0, 1000, count)})


def _evolved(catalog: Any) -> None:
    """``plain`` and ``evolved`` have the same rows; half of the latter has older columns."""
    import numpy as np
    import pyarrow as pa
    from pyiceberg.types import LongType

    chance, count = np.random.default_rng(9), 1_000_000
    first, second = (
        pa.table(
            {
                "key": chance.integers(0, 50, count),
                "amount": np.round(chance.random(count) * 100, 2),
            }
        )
        for _ in range(2)
    )
    _append(catalog, "plain", iter([first, second]))
    table = _append(catalog, "evolved", iter([first]))
    with table.update_schema() as update:
        update.rename_column("amount", "total")
        update.add_column("extra", LongType())
    table.refresh()
    extra = pa.array(np.arange(count) % 10)
    table.append(second.rename_columns(["key", "total"]).append_column("extra", extra))


if __name__ == "__main__":
    write(Path(sys.argv[1]), Path(sys.argv[2]))
