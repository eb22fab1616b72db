"""Spark's own Parquet reader, which uses field ids: the scans that it reads exactly."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from icesql.config import Settings
from icesql.context import QueryContext
from icesql.engine.duckdb.relations import grouping
from icesql.engine.duckdb.relations.footer import Element, FooterCache
from icesql.engine.duckdb.relations.grouping import group_files
from icesql.engine.duckdb.relations.relation import are_free_of_nan, escape_glob, has_default
from icesql.engine.duckdb.relations.relation_builder import RelationBuilder
from icesql.engine.duckdb.sources import folders_read
from icesql.engine.spark.releases import reads_widened_columns
from icesql.iceberg import types as t
from icesql.iceberg.schema import METADATA_IDS

if TYPE_CHECKING:
    from icesql.scan.plan import ScanPlan

# Above this number Spark lists the files in a separate job; icesql knows them already.
MOST_FILES: Final = 1_000
MOST_FRAMES: Final = 64
_TYPES = (
    t.BooleanType
    | t.IntegerType
    | t.LongType
    | t.FloatType
    | t.DoubleType
    | t.DecimalType
    | t.DateType
    | t.StringType
    | t.BinaryType
)
_PLAIN_PATH: Final = re.compile(r"(?:[a-z0-9]+:/*)?[A-Za-z0-9_./=+@~ -]+")
# Codecs of column chunks that every Spark since 3.5 can read.
_CODECS: Final = ("UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD", "LZ4_RAW")
_OTHER_CHUNKS: Final = (
    f"SELECT count(*) FROM parquet_metadata(?) WHERE compression NOT IN {_CODECS} OR "
    "(contains(encodings, 'BYTE_STREAM_SPLIT') AND type NOT IN ('FLOAT', 'DOUBLE'))"
)
# Types to which a column may have been widened from a narrower type.
_PHYSICAL: Final[dict[type[t.IcebergType], str]] = {t.LongType: "INT64", t.DoubleType: "DOUBLE"}


def readable_folders(plans: Sequence[ScanPlan], settings: Settings) -> set[str]:
    """The folders of the footers to check before choosing Spark's own reader."""
    return {
        folder
        for plan in plans
        for folder in folders_read(plan, group_files(plan.files, plan.context, settings))
    }


def _has_widened_columns(plan: ScanPlan, footers: FooterCache) -> bool:
    """True if a file has a column in a narrower type than the table's; uses cached footers."""
    for task in plan.files:
        file = task.data_file
        location = plan.context.storage.location(file.path)
        facts = footers.facts(location, file.file_size_in_bytes)
        held = None if facts is None else facts.footer.by_id
        if held is None:
            return True
        for column in plan.scan.projection.fields:
            element = held.get(column.field_id)
            if element is not None and not _is_of_type(element, column.type):
                return True
    return False


def _is_of_type(element: Element, column_type: t.IcebergType) -> bool:
    if isinstance(column_type, t.DecimalType):
        return element.precision == column_type.precision
    physical = _PHYSICAL.get(type(column_type))
    return physical is None or element.physical == physical


def _is_readable_column(column: t.NestedField) -> bool:
    """False for times: whether Spark respects the footer's flags depends on settings."""
    return (
        isinstance(column.type, _TYPES)
        and column.field_id not in METADATA_IDS
        and not has_default(column)
    )


def _is_readable_path(location: str) -> bool:
    # Spark interprets paths as patterns and URIs, in the JVM's encoding, and ignores files whose
    # names begin with these characters.
    return not location.rsplit("/", 1)[-1].startswith(("_", ".")) and bool(
        _PLAIN_PATH.fullmatch(location)
    )


class ReaderFrames:
    """DataFrames of Spark's Parquet reader, cached because Spark lists the files for each new one.

    Files never change, so the frames stay valid; one for each session, list of files and columns.
    """

    def __init__(self) -> None:
        self._footers = FooterCache()
        self._frames: dict[tuple[Any, ...], tuple[Any, Any]] = {}
        self._plain: set[tuple[str, int]] = set()

    def can_read(self, plan: ScanPlan, cursor: Any, query: QueryContext) -> bool:
        """True if Spark returns the rows of a scan exactly; checks the footers last.

        ``cursor`` is DuckDB's.
        """
        columns = plan.scan.projection.fields
        if not plan.files or not columns or len(plan.files) > MOST_FILES:
            return False
        if not all(_is_readable_column(column) for column in columns):
            return False
        paths = {task.data_file.path for task in plan.files}
        if len(paths) < len(plan.files):
            return False  # Spark reads a path that occurs twice only once
        if not all(_is_readable_path(plan.context.storage.location(path)) for path in paths):
            return False
        groups = group_files(plan.files, plan.context, query.settings)
        if any(group.name != grouping.DUCKDB for group in groups):
            return False
        if not are_free_of_nan(columns, plan.files):
            return False  # Spark prunes by bounds, but orders NaN, which they omit, last
        confirmed = RelationBuilder(cursor, self._footers, query, []).confirm(plan.context, groups)
        if any(group.name != grouping.DUCKDB for group in confirmed):
            return False
        if not reads_widened_columns() and _has_widened_columns(plan, self._footers):
            return False
        return self._are_plain(plan, cursor)

    def _are_plain(self, plan: ScanPlan, cursor: Any) -> bool:
        """True if Spark knows the codecs and encodings of all files."""
        import duckdb

        files = {
            (plan.context.storage.location(each.data_file.path), each.data_file.file_size_in_bytes)
            for each in plan.files
        }
        unknown = files - self._plain
        if unknown:
            paths = [escape_glob(path) for path, _ in unknown]
            try:
                if cursor.execute(_OTHER_CHUNKS, [paths]).fetchone() != (0,):
                    return False
            except duckdb.Error:  # icesql's own reader will raise a better error
                return False
            self._plain |= unknown
        return True

    def frame(self, session: Any, plan: ScanPlan) -> Any:
        """The scan as a DataFrame over the files that remain after pruning."""
        storage = plan.context.storage
        paths = tuple(storage.location(task.data_file.path) for task in plan.files)
        key = id(session), paths, plan.scan.projection.fields
        found = self._frames.get(key)
        if found is None:
            while len(self._frames) >= MOST_FRAMES:
                self._frames.pop(next(iter(self._frames)))
            found = self._frames[key] = session, _frame(session, plan, paths)
        return found[1]


def _frame(session: Any, plan: ScanPlan, paths: Sequence[str]) -> Any:
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import StructType

    from icesql.read.columns.arrow_schema import arrow_type

    schema = StructType()
    for column in plan.scan.projection.fields:
        kind = from_arrow_type(arrow_type(column.type))
        schema.add(column.name, kind, True, {"parquet.field.id": column.field_id})
    return (
        session.read.schema(schema)
        .option("mergeSchema", "false")
        .option("datetimeRebaseMode", "CORRECTED")
        .parquet(*paths)
    )
