"""Apply updates to the JSON of table metadata, as Java's ``TableMetadata.Builder`` does.

The JSON rather than its parsed form is changed, so that fields unknown to icesql are kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from icesql.errors import ProgrammingError, UnsupportedTableError
from icesql.iceberg.evolution.rules import (
    check_partition_names,
    check_schema,
    least_format,
    shared_names,
)
from icesql.iceberg.metadata.changes import updates as u
from icesql.iceberg.metadata.changes.snapshots import (
    Document,
    SnapshotChanges,
    listed,
    next_metadata_log,
)
from icesql.iceberg.metadata.json_fields import as_int, as_list, as_object, required_int
from icesql.iceberg.metadata.schema_json import parse_schema
from icesql.iceberg.metadata.table_metadata import NEWEST_FORMAT, SortOrder, parse_sort_orders
from icesql.iceberg.metadata.writing import (
    schema_json,
    sort_order_json,
    spec_fields_json,
    spec_json,
)
from icesql.iceberg.partitioning import FIRST_FIELD_ID, PartitionSpec, parse_spec
from icesql.iceberg.schema import Schema

# Java reserves these: callers pass them as properties, and they are never stored as such.
RESERVED_PROPERTIES: Final = frozenset(
    {
        "format-version", "uuid", "snapshot-count", "current-snapshot-id",
        "current-snapshot-summary", "current-snapshot-timestamp-ms", "current-schema",
        "default-partition-spec", "default-sort-order",
    }
)  # fmt: skip
_DEFAULT_FORMAT: Final = 2
_ORDER: Final = (
    "format-version", "table-uuid", "location", "last-sequence-number", "last-updated-ms",
    "last-column-id", "schema", "current-schema-id", "schemas", "partition-spec",
    "default-spec-id", "partition-specs", "last-partition-id", "default-sort-order-id",
    "sort-orders", "properties", "current-snapshot-id", "next-row-id", "encryption-keys", "refs",
    "snapshots", "statistics", "partition-statistics", "snapshot-log", "metadata-log",
)  # fmt: skip
# The keys that differ even between two versions without a change.
_OF_EACH_VERSION: Final = ("last-updated-ms", "metadata-log")


def apply_updates(
    base: Mapping[str, Any] | None,
    updates: Sequence[u.Update],
    *,
    now_ms: int,
    base_location: str | None = None,
) -> Document:
    """The JSON of the metadata that ``updates`` make of ``base``, in their order.

    ``base`` is the parsed JSON of the current metadata file, which is not changed; None makes a
    new table, whose format version is 2 unless the first update says otherwise. ``base_location``
    is its file, which goes to the metadata log. The result is of ``now_ms`` (since 1970, UTC),
    or of the last change of the base where the clock is behind it.

    Raises CommitConflictError for a snapshot that was made from older metadata,
    ProgrammingError for updates that do not fit together, UnsupportedTableError for encryption.
    """
    builder = _Builder(base, now_ms)
    for update in updates:
        builder.apply(update)
    return builder.finished(base_location)


def is_changed(base: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether two versions of a table differ in more than their time and their log."""

    def content(document: Mapping[str, Any]) -> Mapping[str, Any]:
        whole = _Builder(document, 0).finished(None)
        return {key: value for key, value in whole.items() if key not in _OF_EACH_VERSION}

    return content(base) != content(new)


class _Builder:
    """The JSON of one table while updates are applied to it."""

    def __init__(self, base: Mapping[str, Any] | None, now_ms: int) -> None:
        node = {} if base is None else dict(base)
        self._node, self._is_new = node, base is None
        self.version = _DEFAULT_FORMAT if base is None else required_int(node, "format-version", "")
        if self.version > NEWEST_FORMAT or node.get("encryption-keys"):
            raise UnsupportedTableError(
                "changes of encrypted tables"
                if node.get("encryption-keys")
                else f"changes of format version {self.version}"
            )
        self._base_updated_ms = as_int(node.get("last-updated-ms", 0), "last-updated-ms")
        self._now_ms = max(now_ms, self._base_updated_ms)
        schemas, specs = listed(node, "schemas"), listed(node, "partition-specs")
        if not schemas and node.get("schema") is not None:
            schemas = [{"schema-id": 0, **as_object(node["schema"], "schema")}]
        if not specs and node.get("partition-spec") is not None:
            specs = [{"spec-id": 0, "fields": _with_ids(node["partition-spec"])}]
        orders = listed(node, "sort-orders") or [{"order-id": 0, "fields": []}]

        def current(key: str) -> int:
            return as_int(node.get(key, 0), key)

        self._schemas = _Definitions("schema", schemas, current("current-schema-id"))
        self._specs = _Definitions("spec", specs, current("default-spec-id"))
        self._orders = _Definitions("order", orders, current("default-sort-order-id"))
        self._properties = dict(as_object(node.get("properties") or {}, "properties"))
        self._snapshots = SnapshotChanges(node, self._now_ms)
        self._base = [*schemas], [*specs]

    # ------------------------------------------------------------------ updates

    def apply(self, update: u.Update) -> None:
        match update:
            case u.AssignUuid(uuid):
                known = self._node.get("table-uuid")
                if known is not None and known.lower() != uuid.lower():
                    raise ProgrammingError(f"the table has the uuid {known}; it cannot change")
                self._node["table-uuid"] = uuid
            case u.UpgradeFormatVersion(version):
                self._upgrade(version)
            case u.AddSchema(schema):
                self._add_schema(schema)
            case u.SetCurrentSchema(schema_id):
                self._schemas.choose(schema_id)
            case u.AddPartitionSpec(spec):
                self._add_spec(spec)
            case u.SetDefaultSpec(spec_id):
                self._specs.choose(spec_id)
            case u.AddSortOrder(order):
                self._add_order(order)
            case u.SetDefaultSortOrder(order_id):
                self._orders.choose(order_id)
            case u.SetLocation(location):
                self._node["location"] = location.rstrip("/") or location
            case u.SetProperties(properties):
                reserved = RESERVED_PROPERTIES.intersection(properties)
                if reserved:
                    raise ProgrammingError(f"property {min(reserved)} is not one that can be set")
                self._properties.update(properties)
            case u.RemoveProperties(names):
                for name in names:
                    self._properties.pop(name, None)
            case u.RemovePartitionSpecs(spec_ids):
                self._specs.remove(spec_ids)
            case u.RemoveSchemas(schema_ids):
                self._schemas.remove(schema_ids)
            case _:
                self._snapshots.apply(update, self.version)

    def _upgrade(self, version: int) -> None:
        if not 1 <= version <= NEWEST_FORMAT:
            raise ProgrammingError(
                f"format version {version} is not one of 1 to {NEWEST_FORMAT}, which icesql writes"
            )
        if not self._is_new and version < self.version:
            raise ProgrammingError(
                f"the table has format version {self.version}; it cannot go back to {version}"
            )
        if not self._is_new and version >= 3 > self.version:
            self._snapshots.next_row_id = 0
        self.version = version

    def _add_schema(self, schema: Schema) -> None:
        check_schema(schema, self.version)
        wanted = schema.fields, set(schema.identifier_field_ids)
        for known in map(parse_schema, self._schemas.listed):
            if (known.fields, set(known.identifier_field_ids)) == wanted:
                self._schemas.added = known.schema_id
                return
        self._schemas.append(schema_json(schema))
        highest = max(schema.field_by_id, default=0)
        self._node["last-column-id"] = max(self._node.get("last-column-id", 0), highest)

    def _add_spec(self, spec: PartitionSpec) -> None:
        for known in self._parsed_specs():
            if is_compatible(known, spec):
                self._specs.added = known.spec_id
                return
        self._specs.append(spec_json(spec))

    def _add_order(self, order: SortOrder) -> None:
        orders = self._orders
        if not order.fields:
            orders.added = 0
            if not any(each["order-id"] == 0 for each in orders.listed):
                orders.listed.insert(0, {"order-id": 0, "fields": []})
            return
        for known in parse_sort_orders(orders.listed).values():
            if known.fields == order.fields:
                orders.added = known.order_id
                return
        orders.append(sort_order_json(order))

    # ------------------------------------------------------------------ result

    def finished(self, base_location: str | None) -> Document:
        """The whole document, known keys in the order in which Java writes them."""
        node, version = self._node, self.version
        for key in ("table-uuid", "location"):
            if node.get(key) is None:
                raise ProgrammingError(f"table metadata needs a {key}")
        schemas, specs, orders = self._schemas, self._specs, self._orders
        schema, spec = schemas.chosen("current"), parse_spec(specs.chosen("default"))
        self._check_types(schema)
        self._check_names()
        given = (each.field_id for one in self._parsed_specs() for each in one.fields)
        made: Document = {
            **node,
            "format-version": version,
            "last-sequence-number": self._snapshots.last_sequence_number,
            "last-updated-ms": self._now_ms,
            "last-column-id": as_int(node.get("last-column-id", 0), "last-column-id", 32),
            "current-schema-id": schemas.current,
            "schemas": schemas.listed,
            "default-spec-id": specs.current,
            "partition-specs": specs.listed,
            "last-partition-id": max(node.get("last-partition-id", 0), FIRST_FIELD_ID - 1, *given),
            "default-sort-order-id": orders.current,
            "sort-orders": orders.listed,
            "properties": self._properties,
            **self._snapshots.finished(version),
            "metadata-log": next_metadata_log(
                listed(node, "metadata-log"),
                self._properties,
                base_location,
                self._base_updated_ms,
            ),
        }
        for key in ("schema", "partition-spec", "next-row-id"):
            made.pop(key, None)
        if version == 1:
            del made["last-sequence-number"]
            made["schema"] = schema
            made["partition-spec"] = spec_fields_json(spec.fields)
        if version >= 3:
            made["next-row-id"] = self._snapshots.next_row_id
        return {key: made[key] for key in (*_ORDER, *made) if key in made}

    def _parsed_specs(self) -> list[PartitionSpec]:
        return [parse_spec(each) for each in self._specs.listed]

    def _check_names(self) -> None:
        """Refuse names that this change alone gives to a partition field and to a column."""
        if self._is_new or (self._schemas.added, self._specs.added) != (None, None):
            old, specs = self._base
            known = shared_names(map(parse_schema, old), map(parse_spec, specs))
            schemas = map(parse_schema, self._schemas.listed)
            check_partition_names(schemas, self._parsed_specs(), known)

    def _check_types(self, schema: Document) -> None:
        if self._is_new or self._schemas.added is not None:
            needed = least_format(parse_schema(schema))
            if needed > self.version:
                check_schema(parse_schema(schema), self.version)


class _Definitions(Struct):
    """The schemas, specs or orders of a table; ids of the current and of the last added one."""

    what: str
    listed: list[Document]
    current: int
    added: int | None = None

    def append(self, made: Document) -> None:
        """Add one under a new id."""
        self.added = 1 + max(map(self._id, self.listed), default=-1)
        self.listed.append({**made, f"{self.what}-id": self.added})

    def choose(self, given: int) -> None:
        """Make one the current one."""
        wanted = self.added if given == u.LAST_ADDED else given
        if wanted is None or wanted not in map(self._id, self.listed):
            raise ProgrammingError(f"the table has no {self.what} {given}")
        self.current = wanted

    def remove(self, ids: Sequence[int]) -> None:
        """Remove some, none of which may be the current one."""
        if self.current in ids:
            raise ProgrammingError(f"{self.what}-id {self.current} is in use and cannot be removed")
        self.listed = [each for each in self.listed if self._id(each) not in ids]

    def chosen(self, word: str) -> Document:
        """The current one."""
        for each in self.listed:
            if self._id(each) == self.current:
                return each
        raise ProgrammingError(f"table metadata needs its {word} {self.what} {self.current}")

    def _id(self, definition: Document) -> int:
        key = f"{self.what}-id"
        return as_int(definition.get(key, 0), key, 32)


def _with_ids(fields: Any) -> list[Document]:
    listed = [as_object(each, "partition-spec") for each in as_list(fields, "partition-spec")]
    return [{"field-id": FIRST_FIELD_ID + n, **each} for n, each in enumerate(listed)]


def is_compatible(one: PartitionSpec, other: PartitionSpec) -> bool:
    """Whether two specs have the same fields in the same order, whatever ids these have."""

    def fields(spec: PartitionSpec) -> list[tuple[tuple[int, ...], str, str]]:
        return [(each.source_ids, each.name, each.transform.lower()) for each in spec.fields]

    return fields(one) == fields(other)
