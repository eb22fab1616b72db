"""The metadata of views: read, and made anew for a new version.

Each version has the SQL in one dialect or several.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, Final

from icesql.errors import CorruptFileError, UnsupportedTableError
from icesql.frozen import Frozen
from icesql.iceberg.metadata.json_fields import (
    Malformed,
    as_list,
    as_object,
    as_text,
    as_time,
    load_json,
    objects,
    optional_text,
    required,
    required_int,
    required_text,
    text_map,
    whole_number,
)
from icesql.iceberg.metadata.schema_json import parse_schema
from icesql.iceberg.metadata.writing import schema_json
from icesql.iceberg.schema import Schema

_FORMAT: Final = 1


class Representation(Frozen):
    """The SQL of a view in one dialect, as its writer calls that."""

    sql: str
    dialect: str


class ViewMetadata(Frozen):
    """The current version of a view, and the properties of the view.

    ``default_catalog`` is None where names without a catalog are those of the view's own.
    """

    uuid: str
    version_id: int
    timestamp_ms: int
    schema: Schema
    representations: tuple[Representation, ...]
    default_catalog: str | None
    default_namespace: tuple[str, ...]
    properties: Mapping[str, str]


def parse_view(data: bytes, path: str) -> ViewMetadata:
    """The metadata that ``data`` holds.

    Raises CorruptFileError naming ``path``, UnsupportedTableError for a newer format.
    """
    try:
        return _parse(as_object(load_json(data), "view"))
    except Malformed as error:
        raise CorruptFileError(path, str(error)) from error
    except UnsupportedTableError as error:
        raise UnsupportedTableError(error.feature, path=path) from error


def _parse(node: Mapping[str, Any]) -> ViewMetadata:
    form = required_int(node, "format-version", "view")
    if form != _FORMAT:
        raise UnsupportedTableError(f"Iceberg views of format version {form} ({_FORMAT} is read)")
    current = required_int(node, "current-version-id", "view")
    versions = {
        required_int(each, "version-id", "version"): each
        for each in objects(node, "versions", "view")
    }
    if current not in versions:
        raise Malformed(f"current-version-id {current} is none of its versions")
    version = versions[current]
    wanted = required_int(version, "schema-id", "version")
    schema = next(
        (
            each
            for each in as_list(required(node, "schemas", "view"), "schemas")
            if as_object(each, "schema").get("schema-id", 0) == wanted
        ),
        None,
    )
    if schema is None:
        raise Malformed(f"schema-id {wanted} is none of its schemas")
    representations = [
        Representation(
            required_text(each, "sql", "representation"),
            required_text(each, "dialect", "representation").lower(),
        )
        for each in objects(version, "representations", "version")
        if each.get("type") == "sql"
    ]
    namespace = as_list(required(version, "default-namespace", "version"), "default-namespace")
    return ViewMetadata(
        uuid=required_text(node, "view-uuid", "view"),
        version_id=current,
        timestamp_ms=as_time(required(version, "timestamp-ms", "version"), "version timestamp-ms"),
        schema=parse_schema(schema),
        representations=tuple(representations),
        default_catalog=optional_text(version, "default-catalog", "version") or None,
        default_namespace=tuple(as_text(each, "default-namespace") for each in namespace),
        properties=text_map(node, "properties", "view"),
    )


# ------------------------------------------------------------------ new versions
# Source: the view spec of Iceberg, format version 1; Java ``ViewMetadata.Builder``.


_HISTORY: Final = "version.history.num-entries"
_HISTORY_DEFAULT: Final = 10


class NewView(Frozen):
    """A new view: its SQL in one dialect, its columns, and where its names are looked up."""

    schema: Schema
    sql: str
    dialect: str
    default_namespace: tuple[str, ...]
    default_catalog: str | None = None
    properties: Mapping[str, str] = {}
    summary: Mapping[str, str] = {}


def version_json(new: NewView, version_id: int, schema_id: int, now_ms: int) -> dict[str, Any]:
    """One version of a view."""
    node: dict[str, Any] = {
        "version-id": version_id,
        "timestamp-ms": now_ms,
        "schema-id": schema_id,
        "summary": dict(new.summary),
        "representations": [{"type": "sql", "sql": new.sql, "dialect": new.dialect}],
        "default-namespace": [*new.default_namespace],
    }
    if new.default_catalog is not None:
        node["default-catalog"] = new.default_catalog
    return node


def view_document(
    new: NewView, location: str, now_ms: int, base: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The JSON of a new view, or of the next version of ``base``, with the history continued.

    An existing equal version or schema is used again. The property ``version.history.num-entries``
    is the number of versions that are kept.
    """
    known = dict(base or {})
    properties = {**known.get("properties", {}), **new.properties}
    schemas = [*known.get("schemas", [])]
    plain = schema_json(new.schema)
    same = [each for each in schemas if _without(each, "schema-id") == _without(plain, "schema-id")]
    schema_id = same[0].get("schema-id", 0) if same else _next(schemas, "schema-id", 0)
    if not same:
        schemas.append({**plain, "schema-id": schema_id})
    versions = [*known.get("versions", [])]
    made = version_json(new, _next(versions, "version-id", 1), schema_id, now_ms)
    old = [each for each in versions if _without(each, *_OF_ONE) == _without(made, *_OF_ONE)]
    if old:
        made = old[0]
    else:
        versions.append(made)
    current = made["version-id"]
    log = [*known.get("version-log", [])]
    if current != known.get("current-version-id"):
        log.append({"timestamp-ms": now_ms, "version-id": current})
    found = whole_number(str(properties.get(_HISTORY, "")))
    most = _HISTORY_DEFAULT if found is None else max(found, 1)
    newest = sorted(each["version-id"] for each in versions if each["version-id"] != current)
    kept = {current, *(newest[-(most - 1) :] if most > 1 else ())}
    return {
        **known,
        "view-uuid": known.get("view-uuid") or str(uuid.uuid4()),
        "format-version": 1,
        "location": known.get("location") or location,
        "properties": properties,
        "schemas": schemas,
        "current-version-id": current,
        "versions": [each for each in versions if each["version-id"] in kept],
        "version-log": _log_of(log, kept),
    }


_OF_ONE: Final = ("version-id", "timestamp-ms")


def _log_of(log: list[dict[str, Any]], kept: set[int]) -> list[dict[str, Any]]:
    """The entries after the last one whose version was removed: a history has no gaps."""
    found: list[dict[str, Any]] = []
    for each in log:
        if each["version-id"] in kept:
            found.append(each)
        else:
            found = []
    return found


def _without(node: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in node.items() if key not in keys}


def _next(nodes: list[dict[str, Any]], key: str, first: int) -> int:
    return max((int(each.get(key, 0)) for each in nodes), default=first - 1) + 1
