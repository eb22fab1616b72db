"""The rows over which Spark's dialect is judged: NULL, NaN, empty, negative, Unicode in every type."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

NAN = float("nan")
D = Decimal


def _moment(text: str | None) -> dt.datetime | None:
    return None if text is None else dt.datetime.fromisoformat(text)


MOMENTS = [
    "2020-01-31 10:20:30.123456", "2020-02-29 00:00:00", "1969-12-31 23:59:59.5", None,
    "2026-11-22 12:00:00", "2021-01-01 00:00:01", "2024-12-30 23:00:00", "2000-06-15 06:07:08.9",
]  # fmt: skip
FIELDS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "k": (pa.int32(), [1, 2, 3, 4, 5, 6, 7, 8]),
    "i": (pa.int32(), [1, -2, 0, None, 12345, -7, 7, 3]),
    "j": (pa.int32(), [2, 3, 5, 1, None, 4, -3, 3]),
    "b": (pa.int64(), [10, -20, 0, None, 9007199254740993, -7, 7, 3]),
    "d": (pa.float64(), [1.5, -2.5, 0.0, None, NAN, 1e20, -0.0004, 12345678.9]),
    "g": (pa.float64(), [1.5, -2.5, 0.5, None, 2.675, 0.0, -1.0, 100.25]),
    "f": (pa.float32(), [1.5, -2.5, 0.1, None, 2.5, 3e10, -1.0, 0.0]),
    "s": (pa.string(), ["abc", "", "Ünï ß", None, "  pad ", "a_b%c", "2020-01-31", "12"]),
    "p": (pa.string(), ["b", "a", "ï", "x", None, "_", "-", "1"]),
    "c": (pa.string(), ["1", "-2", "0", None, "12345", "-7", " 7 ", "3"]),
    "e": (pa.decimal128(10, 2), [D("1.25"), D("-1.25"), D("0.00"), None, D("99999999.99"),
                                 D("2.50"), D("-3.75"), D("10.00")]),
    "h": (pa.decimal128(6, 3), [D("0.125"), D("3.000"), D("-0.500"), D("1.000"), None, D("7.777"),
                                D("-2.500"), D("999.999")]),
    "dt": (pa.date32(), [None if m is None else _moment(m).date() for m in MOMENTS]),  # type: ignore[union-attr]
    "ts": (pa.timestamp("us"), [_moment(m) for m in MOMENTS]),
    "tz": (pa.timestamp("us", "UTC"),
           [None if m is None else _moment(m).replace(tzinfo=dt.UTC) for m in MOMENTS]),  # type: ignore[union-attr]
    "bo": (pa.bool_(), [True, False, None, True, False, None, True, True]),
    "a": (pa.list_(pa.int32()), [[1, 2, 3], [], [None, 1], None, [3, 3, 1], [None], [-1], [5, 4]]),
    "a2": (pa.list_(pa.int32()), [[3, 4], [1], [None, 2], [1], None, [], [-1, -1], [4, 5]]),
    "sa": (pa.list_(pa.string()), [["a", "b"], [], [None, "x"], None, ["ß"], ["", "a"], ["a"], ["z"]]),
    "m": (pa.map_(pa.string(), pa.int32()),
          [[("a", 1), ("b", 2)], [], [("a", None)], None, [("x", 5)], [("b", 0)], [("ß", 1)],
           [("a", -1)]]),
    "st": (pa.struct([("x", pa.int32()), ("y", pa.string())]),
           [{"x": 1, "y": "a"}, {"x": None, "y": ""}, {"x": 2, "y": None}, None, {"x": 3, "y": "ß"},
            {"x": -1, "y": "b"}, {"x": 0, "y": "c"}, {"x": 1, "y": "a"}]),
    "bi": (pa.binary(), [b"abc", b"", b"\x00\xff", None, b"\xc3\xa9", b"1", b" ", b"zz"]),
}  # fmt: skip


def rows() -> pa.Table:
    """The table ``t``."""
    return pa.table({name: pa.array(values, kind) for name, (kind, values) in FIELDS.items()})


def write(folder: Path) -> None:
    """A warehouse in ``folder`` whose table ``n.t`` has these rows in one file."""
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("c", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
    catalog.create_namespace("n")
    table = rows()
    made = catalog.create_table("n.t", table.schema)
    made.append(table)
