"""The metadata of a view: its versions, and the SQL of each in one dialect or several.

Source: the view spec of Iceberg, format version 1.
"""

from __future__ import annotations

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
)
from icesql.iceberg.metadata.schema_json import parse_schema
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
