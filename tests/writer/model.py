"""The rows of a table at a snapshot, worked out one by one in plain Python.

A value tree names the children of structs by field id; lists are lists, maps lists of pairs.
"""

from __future__ import annotations

import math
import struct
import uuid
from dataclasses import dataclass, field
from datetime import date, datetime, time
from decimal import Decimal

from tests.writer.partition_values import integer_form

NANOSECOND_TYPES = ("timestamp_ns", "timestamptz_ns")


@dataclass(eq=False)
class DataFile:
    """A data file: the columns it stores, its rows, and identity partition values by source."""

    written: object
    fields: list
    rows: list
    constants: dict

    @property
    def path(self):
        return self.written.record["file_path"]


@dataclass(eq=False)
class DeleteFile:
    """Positions as (path, position) pairs, or keys: value tuples of the columns ``ids``.

    ``types`` are those of the key columns when the file was written.
    """

    written: object
    kind: str
    positions: set = field(default_factory=set)
    path: str | None = None
    ids: tuple = ()
    types: tuple = ()
    keys: list = field(default_factory=list)


@dataclass
class Model:
    """What the schemas, specs and files of a table mean."""

    schemas: list
    specs: list
    defaults: dict

    def rows(self, files, schema):
        """The live rows of the files as value trees of ``schema`` (JSON fields)."""
        return [
            {each["id"]: self.project(each, data.fields, row, data.constants) for each in schema}
            for data, _, row in self.live(files)
        ]

    def live(self, files):
        """(data file, position, stored row) of every live row."""
        deletes = [each for each in files if isinstance(each, DeleteFile)]
        for data in files:
            if isinstance(data, DataFile):
                own = [(each, self._keys(each)) for each in self._deletes_of(data, deletes)]
                for position, row in enumerate(data.rows):
                    if not any(self._deleted(data, position, row, *each) for each in own):
                        yield data, position, row

    def _deletes_of(self, data, deletes):
        number = data.written.sequence_number
        found, vector = [], None
        for each in deletes:
            delete_number = each.written.sequence_number
            if each.kind == "equality":
                if delete_number > number and self._in_scope(data, each):
                    found.append(each)
            elif delete_number >= number:
                if each.kind == "vector" and each.path == data.path:
                    vector = each
                elif each.kind == "position":
                    found.append(each)
        if vector is not None:
            found = [each for each in found if each.kind == "equality"] + [vector]
        return found

    def _in_scope(self, data, delete):
        spec_id = delete.written.spec_id
        if all(each["transform"] == "void" for each in self.specs[spec_id]["fields"]):
            return True
        return spec_id == data.written.spec_id and (
            partition_key(data.written) == partition_key(delete.written)
        )

    def _keys(self, delete):
        """The keys as the table's columns are now: promoted like the rows they meet."""
        wanted = [self.definition(each)["type"] for each in delete.ids]
        return {
            tuple(
                key_form(to, self._convert(to, was, value, {}))
                for to, was, value in zip(wanted, delete.types, key, strict=True)
            )
            for key in delete.keys
        }

    def _deleted(self, data, position, row, delete, keys):
        if delete.kind != "equality":
            return (data.path, position) in delete.positions
        key = tuple(
            key_form(self.definition(each)["type"], self.value(each, data, row))
            for each in delete.ids
        )
        return key in keys

    def value(self, field_id, data, row):
        """The value of a column, or of a child of structs, by the newest definition of its id."""
        path = self._path(field_id)
        found = self.project(path[0], data.fields, row, data.constants)
        for each in path[1:]:
            found = None if found is None else found[each["id"]]
        return found

    def definition(self, field_id):
        """The newest JSON field of an id."""
        return self._path(field_id)[-1]

    def _path(self, field_id):
        for schema in reversed(self.schemas):
            found = path_to(schema["fields"], field_id)
            if found:
                return found
        raise KeyError(field_id)

    def project(self, wanted, stored_fields, row, constants):
        """A field of the table out of a stored row, by field id."""
        field_id = wanted["id"]
        stored = next((each for each in stored_fields if each["id"] == field_id), None)
        if stored is not None:
            return self._convert(wanted["type"], stored["type"], row[field_id], constants)
        if field_id in constants:
            stored_type, value = constants[field_id]
            return self._convert(wanted["type"], stored_type, value, constants)
        if "initial-default" in wanted:
            return self.defaults[field_id]
        return None

    def _convert(self, wanted, stored, value, constants):
        if value is None or wanted == "unknown" or stored == "unknown":
            return None
        if isinstance(wanted, str):
            if stored == "date" and wanted != "date":
                micros = integer_form("date", value) * 86_400_000_000
                return (
                    micros * 1000
                    if wanted in NANOSECOND_TYPES
                    else (datetime.combine(value, time()))
                )
            return value
        match wanted["type"]:
            case "struct":
                return {
                    each["id"]: self.project(each, stored["fields"], value, constants)
                    for each in wanted["fields"]
                }
            case "list":
                return [
                    self._convert(wanted["element"], stored["element"], each, {}) for each in value
                ]
            case _:
                return [
                    (
                        self._convert(wanted["key"], stored["key"], key, {}),
                        self._convert(wanted["value"], stored["value"], item, {}),
                    )
                    for key, item in value
                ]


def path_to(fields, field_id):
    """The fields from the top to an id through structs, None when it is not there."""
    for each in fields:
        if each["id"] == field_id:
            return [each]
        if isinstance(each["type"], dict) and each["type"]["type"] == "struct":
            inner = path_to(each["type"]["fields"], field_id)
            if inner:
                return [each, *inner]
    return None


def partition_key(written):
    """A partition tuple that compares as Iceberg does: NaN is NaN, -0.0 is not 0.0."""
    return tuple(key_form(None, value) for value in written.record["partition"].values())


def key_form(type_, value):
    """A value as an equality delete compares it."""
    if isinstance(value, float):
        return ("nan",) if math.isnan(value) else ("float", struct.pack(">d", value))
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, datetime):
        return ("moment", integer_form(type_, value))
    return value


def shown(type_, tree):
    """A model value in the form in which ``seen`` shows results."""
    if tree is None:
        return None
    if isinstance(type_, str):
        if type_ == "uuid":
            return seen(uuid.UUID(bytes=tree))
        if type_ in NANOSECOND_TYPES:
            return f"ns {tree}"
        return seen(tree)
    match type_["type"]:
        case "struct":
            return {each["name"]: shown(each["type"], tree[each["id"]]) for each in type_["fields"]}
        case "list":
            return [shown(type_["element"], each) for each in tree]
        case _:
            # Maps are unordered by definition; a text of each pair sorts.
            pairs = [(shown(type_["key"], k), shown(type_["value"], v)) for k, v in tree]
            return sorted(pairs, key=repr)


def seen(value):
    """A Python value of a result as text that tells NaN, zeros, scales and instants apart."""
    match value:
        case None:
            return None
        case dict():
            return {name: seen(each) for name, each in value.items()}
        case list():
            if value and all(isinstance(each, tuple) for each in value):
                return sorted(((seen(key), seen(item)) for key, item in value), key=repr)
            return [seen(each) for each in value]
        case datetime():
            micros = integer_form("timestamp", value)
            if hasattr(value, "nanosecond"):
                return f"ns {micros * 1000 + value.nanosecond}"
            zone = "" if value.tzinfo is None else " UTC"
            return f"{micros}{zone}"
        case date() | time() | uuid.UUID() | Decimal() | bool() | int() | float() | str() | bytes():
            return f"{type(value).__name__} {value!r}"
    raise AssertionError(f"a value of {type(value)}")


def shown_rows(schema, rows):
    """Model rows as sorted texts."""
    return sorted(repr([shown(each["type"], row[each["id"]]) for each in schema]) for row in rows)


def seen_rows(rows):
    """Result rows as sorted texts."""
    return sorted(repr([seen(value) for value in row]) for row in rows)
