"""Files of one manifest as tables of tests write them: counts and bounds of columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from icesql.iceberg.manifest.entries import ManifestEntries, PlainMaps
from icesql.iceberg.schema import Schema
from icesql.iceberg.types import IcebergType
from tests.iceberg.text_forms import columns, read_value
from tests.writer.bounds import encode_bound

MAPS = ("value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")


def entries_of(*files: Mapping[str, Any]) -> ManifestEntries:
    """A manifest of files given by record_count and the maps of MAPS, by field id."""
    count = len(files)
    return ManifestEntries(
        spec_id=0,
        status=[1] * count,
        snapshot_id=[1] * count,
        sequence_number=[1] * count,
        file_sequence_number=[1] * count,
        content=[0] * count,
        path=[f"{index}.parquet" for index in range(count)],
        file_format=["PARQUET"] * count,
        partition=[()] * count,
        record_count=[each.get("record_count", 50) for each in files],
        file_size_in_bytes=[10] * count,
        maps={name: PlainMaps([each.get(name) for each in files]) for name in MAPS},
    )


def read_bound(kind: IcebergType, cell: str) -> bytes | None:
    """The bytes of a bound; "-" means no bound."""
    return None if cell == "-" else encode_bound(kind, read_value(kind, cell))


def read_file(rows: Iterable[Sequence[str]]) -> tuple[Schema, dict[str, Any]]:
    """A file of columns with a name, a type and a cell for each of MAPS; "-" is nothing."""
    rows = list(rows)
    schema = columns(*(f"{name} {kind}" for name, kind, *_ in rows if kind != "child"))
    ids = {name: field_id for field_id, name in schema.name_by_id.items()}
    file: dict[str, Any] = {each: {} for each in MAPS}
    for name, _, *cells in rows:
        field_id = ids[name]
        for stored, cell in zip(MAPS, cells, strict=True):
            if cell != "-":
                is_bound = stored.endswith("bounds")
                kind = schema.field_by_id[field_id].type
                file[stored][field_id] = read_bound(kind, cell) if is_bound else int(cell)
    return schema, file
