"""Find the Parquet files of a folder, with the partition values in the names of its folders.

Source: Java ``TableMigrationUtil`` and ``SparkTableUtil``; Hive's and Spark's names of folders.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final
from urllib.parse import unquote

from icesql.catalog.table import Table
from icesql.context import QueryContext
from icesql.errors import DataError, NotSupportedError, ProgrammingError
from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.iceberg.metadata.json_fields import Malformed
from icesql.iceberg.partitioning import partition_types
from icesql.iceberg.single_value import parse_single_value
from icesql.scan.spec_scan import source_schema
from icesql.storage.many_files import ListedFile, list_files
from icesql.storage.open import Storage

_NULL: Final = "__HIVE_DEFAULT_PARTITION__"


class FoundFile(Frozen):
    """A file to add, with its partition tuple in internal form."""

    path: str
    size: int
    partition: tuple[Any, ...]


def find_files(
    table: Table,
    storage: Storage,
    source: str,
    partition_filter: Mapping[str, str],
    query: QueryContext,
) -> list[FoundFile]:
    """The files below ``source``, or that one file, ordered by name.

    Names that begin with ``_`` or ``.`` are skipped. ``partition_filter`` has values as folder
    names spell them. Raises ProgrammingError if there are no files or folders do not fit the
    table's partition spec, NotSupportedError for a spec whose values folder names do not have,
    DataError for a value that does not fit its type.
    """
    names = _partition_names(table)
    unknown = [each for each in partition_filter if each not in names]
    if unknown:
        known = ", ".join(names) or "no partition fields"
        raise ProgrammingError(f"{unknown[0]!r} is no partition field; the table has {known}")
    found = sorted(_listed(storage, source, query), key=lambda each: each.names)
    files = []
    for each in found:
        texts = _texts(each, names)
        if any(texts[name] != _text(value) for name, value in partition_filter.items()):
            continue
        files.append(FoundFile(each.path, each.size, _tuple(table, texts, each)))
    if not files:
        filtered = " of these partitions" if partition_filter else ""
        raise ProgrammingError(f"there are no files{filtered} in {source}")
    return files


def _listed(storage: Storage, source: str, query: QueryContext) -> Iterator[ListedFile]:
    if source.lower().endswith((".parquet", ".parq")) and storage.exists(source):
        yield ListedFile(source, (source.rpartition("/")[2],), storage.size(source), 0)
        return
    for each in list_files(storage, source, query, enter=lambda name: not _is_hidden(name)):
        if not _is_hidden(each.names[-1]) and each.size:
            yield each


def _is_hidden(name: str) -> bool:
    return name.startswith(("_", ".")) and "=" not in name


def _partition_names(table: Table) -> tuple[str, ...]:
    """The columns of the identity partition fields."""
    spec, schema = table.metadata.spec, table.metadata.schema
    for each in spec.fields:
        if str(each.transform) not in ("identity", "void"):
            raise NotSupportedError(
                f"not supported: adding files to a table that is partitioned by {each.transform} "
                f"({each.name}): folder names can only hold identity partition values; use "
                "INSERT INTO … SELECT FROM read_parquet(…)"
            )
    kept = [each for each in spec.fields if str(each.transform) == "identity"]
    return tuple(schema.name_by_id[each.source_ids[0]] for each in kept)


def _texts(file: ListedFile, names: tuple[str, ...]) -> dict[str, str | None]:
    """The value of each partition field, from the names of the folders."""
    found: dict[str, str | None] = {}
    spelled = {each.lower(): each for each in names}
    for folder in file.names[:-1]:
        name, equals, value = folder.partition("=")
        if not equals:
            continue
        own = spelled.get(unquote(name).lower())
        if own is None:
            known = ", ".join(names) or "not partitioned"
            raise ProgrammingError(
                f"{file.shown} is of partition {folder!r}, and the table's are: {known}"
            )
        found[own] = _text(value)
    missing = [each for each in names if each not in found]
    if missing:
        raise ProgrammingError(
            f"{file.shown} lies in no folder {missing[0]}=…, and the table is partitioned by that"
        )
    return found


def _text(value: str) -> str | None:
    return None if value == _NULL else unquote(value, errors="strict")


def _tuple(table: Table, texts: Mapping[str, str | None], file: ListedFile) -> tuple[Any, ...]:
    metadata = table.metadata
    spec, schema = metadata.spec, metadata.schema
    types = partition_types(spec, source_schema(spec, schema, metadata))
    values: list[Any] = []
    for each, type in zip(spec.fields, types, strict=True):
        if str(each.transform) == "void":
            values.append(None)
            continue
        name = schema.name_by_id[each.source_ids[0]]
        text = texts[name]
        try:
            values.append(None if text is None else _value(type, text))
        except (Malformed, ValueError, InvalidOperation, OverflowError) as error:
            raise DataError(
                f"{file.shown}: {text!r} is no {type}, the type of partition field {name}"
            ) from error
    return tuple(values)


def _value(type: t.IcebergType, text: str) -> Any:
    """Parse a partition value to internal form."""
    match type:
        case t.StringType():
            return text
        case t.BooleanType():
            if text.lower() not in ("true", "false"):
                raise ValueError(text)
            return text.lower() == "true"
        case t.IntegerType() | t.LongType():
            return parse_single_value(type, int(text))
        case t.FloatType() | t.DoubleType():
            return parse_single_value(type, float(text))
        case t.DecimalType(scale=scale):
            exact = Decimal(text)
            if exact != round(exact, scale):
                raise ValueError(text)
            return parse_single_value(type, f"{exact:.{scale}f}")
        case t.DateType() | t.UUIDType():
            return parse_single_value(type, text)
        case _:
            raise NotSupportedError(
                f"not supported: adding files to a table partitioned by a column of type {type}"
            )
