"""Fields of a schema and of a partition spec in Iceberg's JSON, from a text."""

from __future__ import annotations

from typing import Any

from tests.columns import json_columns as fields

__all__ = ["fields", "spec"]


def spec(text: str, first: int = 1000) -> list[dict[str, Any]]:
    """Fields of ``3 day at_day, 1 bucket[16] id_bucket``: a source id, a transform and a name."""
    return [
        {"source-id": int(source), "field-id": number, "transform": transform, "name": name}
        for number, (source, transform, name) in enumerate(map(str.split, text.split(",")), first)
    ]
