"""A changed schema as updates of a table, with the properties that name its columns.

Source: Java ``SchemaUpdate.applyChanges`` and ``MetricsUtil``, ``MappingUtil.update``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from icesql.errors import ProgrammingError
from icesql.iceberg import types as t
from icesql.iceberg.evolution.schema_rules import check_schema
from icesql.iceberg.metadata.changes import updates as u
from icesql.iceberg.metadata.name_mapping import PROPERTY
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.iceberg.schema import Schema

_OF_COLUMNS: Final = (
    "write.metadata.metrics.column.",
    "write.parquet.bloom-filter-enabled.column.",
    "write.parquet.stats-enabled.column.",
)


def schema_updates(base: TableMetadata, schema: Schema) -> tuple[u.Update, ...]:
    """The updates that make ``schema`` the current one; none where it is.

    Raises ProgrammingError and TypeMismatchError for one that the table cannot have, also where a
    column is dropped that the current partitioning or sort order needs.
    """
    old = base.schema
    if (schema.fields, set(schema.identifier_field_ids)) == (
        old.fields,
        set(old.identifier_field_ids),
    ):
        return ()
    check_schema(schema, base.format_version)
    _check_sources(base, schema)
    added = replace(schema, schema_id=1 + max(base.schemas))
    found: list[u.Update] = [u.AddSchema(added), u.SetCurrentSchema()]
    new, gone = _properties(base.properties, old, schema)
    mapping = base.properties.get(PROPERTY)
    if mapping is not None:
        new[PROPERTY] = _mapping(mapping, schema)
    if gone:
        found.append(u.RemoveProperties(gone))
    if new:
        found.append(u.SetProperties(new))
    return tuple(found)


def _check_sources(base: TableMetadata, schema: Schema) -> None:
    left = schema.field_by_id
    for field in base.spec.fields:
        for source in field.source_ids:
            if source not in left and field.transform.lower() != "void":
                raise ProgrammingError(
                    f'cannot drop "{base.schema.name_by_id.get(source, source)}": the table is '
                    f'partitioned by it ("{field.name}"); ALTER TABLE … DROP PARTITION FIELD '
                    f"{field.name} comes first"
                )
    order = base.sort_orders.get(base.default_sort_order_id)
    for key in () if order is None else order.fields:
        for source in key.source_ids:
            if source not in left:
                raise ProgrammingError(
                    f'cannot drop "{base.schema.name_by_id.get(source, source)}": the table is '
                    "ordered by it; ALTER TABLE … WRITE UNORDERED, or by others, comes first"
                )


def _properties(
    properties: Mapping[str, str], old: Schema, new: Schema
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Those of columns under their new names, and those to remove."""
    ids = {name: field_id for field_id, name in old.name_by_id.items()}
    added, gone = {}, []
    for key, value in properties.items():
        start = next((each for each in _OF_COLUMNS if key.startswith(each)), None)
        field_id = None if start is None else ids.get(key.removeprefix(start))
        if field_id is None:
            continue
        name = new.name_by_id.get(field_id)
        if f"{start}{name}" == key:
            continue
        gone.append(key)
        if name is not None:
            added[f"{start}{name}"] = value
    return added, tuple(gone)


def _mapping(text: str, schema: Schema) -> str:
    """The mapping with the names that columns have now; they keep those that they had."""
    try:
        known = json.loads(text)
    except ValueError:
        return text
    return json.dumps(mapped_names(known if isinstance(known, list) else [], schema.fields))


def mapped_names(known: Sequence[Any], fields: Sequence[t.NestedField]) -> list[Any]:
    """The name mapping of fields in JSON, with the names that they have in the ``known`` one."""
    by_id = {each.get("field-id"): each for each in known if isinstance(each, dict)}
    taken = {each.name for each in fields}
    found = []
    for field in fields:
        old = by_id.pop(field.field_id, {})
        # A name that another column has now belongs to that column alone.
        kept = [each for each in old.get("names", []) if each not in taken or each == field.name]
        names = dict.fromkeys([*kept, field.name])
        node: dict[str, Any] = {"field-id": field.field_id, "names": [*names]}
        below = mapped_names(old.get("fields", []), t.children(field.type))
        found.append(node | ({"fields": below} if below else {}))
    for gone in by_id.values():
        left = [each for each in gone.get("names", []) if each not in taken]
        if left:
            found.append({**gone, "names": left})
    return found
