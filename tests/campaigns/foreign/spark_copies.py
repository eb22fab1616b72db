"""Copies of a Spark session's tables and temporary views as Iceberg tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.campaigns.foreign.iceberg_catalog import IcebergCatalog

NAMESPACE = "default"
MOST_ROWS = 50_000
_STORED = {
    "boolean": "boolean",
    "tinyint": "int",
    "smallint": "int",
    "int": "int",
    "bigint": "long",
    "float": "float",
    "double": "double",
    "date": "date",
    "timestamp": "timestamptz",
    "timestamp_ntz": "timestamp",
    "string": "string",
    "binary": "binary",
}


@dataclass
class SparkCopies:
    """Brings the tables that a query names from ``spark`` into the catalog below ``folder``."""

    folder: Path
    spark: Any
    iceberg: IcebergCatalog = field(init=False)
    _known: dict[str, str] | None = None
    _rows: dict[str, pa.Table] = field(default_factory=dict)
    _fresh: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.iceberg = IcebergCatalog(self.folder, "spark_catalog", NAMESPACE)

    def changed(self) -> None:
        """Call it after each statement that may have changed the session's tables."""
        self._known = None
        self._fresh.clear()

    def bring(self, sql: str) -> None:
        """Copy the tables whose names ``sql`` holds, and forget those that are gone."""
        if self._known is None:
            names = [table.name for table in self.spark.catalog.listTables()]
            self._known = {name.lower(): name for name in names}
            for gone in [name for name in self._rows if name not in self._known]:
                del self._rows[gone]
                self.iceberg.drop(NAMESPACE, gone)
        for word in {word.lower() for word in re.findall(r"\w+", sql)} & self._known.keys():
            if word not in self._fresh:
                self._copy(word)
                self._fresh.add(word)

    def _copy(self, name: str) -> None:
        frame = self.spark.table(name)
        fields, columns = [], []
        ids = iter(range(len(frame.schema) + 1, 100_000))
        for at, column in enumerate(frame.schema, start=1):
            kind = stored(column.dataType, ids)
            if kind is not None:
                fields.append({"id": at, "name": column.name, "required": False, "type": kind})
                columns.append(at - 1)
        rows = frame.limit(MOST_ROWS).toArrow().select(columns)
        if not fields or (name in self._rows and self._rows[name].equals(rows)):
            return
        self.iceberg.write(NAMESPACE, name, rows, fields)
        self._rows[name] = rows


def stored(kind: Any, ids: Iterator[int]) -> Any:
    """The Iceberg type (JSON) of a Spark type, None where Iceberg has none."""
    match kind.typeName():
        case "decimal":
            return f"decimal({kind.precision}, {kind.scale})"
        case "array":
            number, inner = next(ids), stored(kind.elementType, ids)
            return inner and {
                "type": "list", "element-id": number, "element": inner, "element-required": False
            }  # fmt: skip
        case "map":
            numbers = next(ids), next(ids)
            key, value = stored(kind.keyType, ids), stored(kind.valueType, ids)
            return (key and value) and {
                "type": "map", "key-id": numbers[0], "key": key,
                "value-id": numbers[1], "value": value, "value-required": False,
            }  # fmt: skip
        case "struct":
            fields = []
            for each in kind.fields:
                number, inner = next(ids), stored(each.dataType, ids)
                if inner is None:
                    return None
                fields.append({"id": number, "name": each.name, "required": False, "type": inner})
            return {"type": "struct", "fields": fields} if fields else None
        case _:
            return _STORED.get(kind.simpleString())
