"""EXPLAIN FILE 'path': the metadata of one file, and the planning step that decided about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from icesql.engine.duckdb.relations.grouping import group_files
from icesql.errors import ProgrammingError, plural
from icesql.explain.files import ExplainedFile, ExplainedManifest, explained_manifests
from icesql.iceberg.bounds import decode_bound
from icesql.iceberg.expressions.predicate import leaves
from icesql.iceberg.expressions.render import render_predicate, render_value

if TYPE_CHECKING:
    from icesql.context import QueryContext
    from icesql.iceberg.manifest.data_file import DataFile
    from icesql.scan.plan import ScanPlan

_MOST_LISTED: Final = 5


def one_file(path: str, plans: Sequence[ScanPlan], query: QueryContext) -> list[str]:
    """The lines about the file whose path is, or ends with, ``path``, for each scan that has it.

    Raises ProgrammingError if no live file of the tables has such a path, or several have.
    """
    lines: list[str] = []
    for number, plan in enumerate(plans):
        found = [
            (manifest, file)
            for manifest in explained_manifests(plan, query, open_all=True)
            for file in manifest.files
            if _is_meant(path, file.path)
        ]
        exact = [each for each in found if each[1].path == path]
        found = exact or found
        if len(found) > 1:
            some = ", ".join(file.path for _, file in found[:_MOST_LISTED])
            raise ProgrammingError(
                f"{len(found)} files of {plan.scan.table.name} end with {path!r}: {some}"
                f"{', …' if len(found) > _MOST_LISTED else ''}; give more of the path"
            )
        if found:
            manifest, file = found[0]
            lines.append(f"scan {number}: {plan.scan.table.name}")
            lines += [f"  {line}" for line in _lines(manifest, file, plan, query)]
    if lines:
        return lines
    tables = ", ".join(dict.fromkeys(plan.scan.table.name for plan in plans)) or "no table"
    raise ProgrammingError(
        f"no live data file of {tables} at the snapshot of this query ends with {path!r}; "
        "SELECT file_path FROM the_table.files lists them"
    )


def _is_meant(wanted: str, path: str) -> bool:
    return path == wanted or path.endswith("/" + wanted.lstrip("/"))


def _lines(
    manifest: ExplainedManifest, file: ExplainedFile, plan: ScanPlan, query: QueryContext
) -> Iterator[str]:
    data_file = file.entries.data_file(file.index)
    yield f"file: {file.path}"
    yield f"manifest: {manifest.manifest.manifest_path}"
    yield f"partition: {file.partition} (spec {data_file.spec_id})"
    groups = f", {plural(file.row_groups, 'row group')}" if file.row_groups else ""
    rows = f"{file.rows:,}" if file.rows >= 0 else "an unknown number of"
    yield f"rows: {rows} in {file.size:,} bytes of {data_file.file_format}{groups}"
    yield f"added by snapshot: {data_file.snapshot_id}, sequence number {data_file.sequence_number}"
    yield from _bounds(data_file, plan)
    yield f"decision: {file.decision}"
    if file.task is None:
        return
    yield f"residual: {render_predicate(file.task.residual, plan.scan.schema)}"
    for delete in file.task.deletes:
        yield f"delete file: {_delete_text(delete)}"
    (group,) = group_files((file.task,), plan.context, query.settings, stores=True)
    yield f"reader: {group.label}"


def _bounds(file: DataFile, plan: ScanPlan) -> Iterator[str]:
    """Bounds and counts of each column that the query reads or filters."""
    scan = plan.scan
    wanted = {each.term.field_id for each in leaves(scan.row_filter)}
    wanted |= {each.field_id for each in scan.projection.fields}
    for field_id in sorted(wanted & set(scan.schema.field_by_id)):
        kind = scan.schema.field_by_id[field_id].type
        facts = []
        for word, bounds in (("at least", file.lower_bounds), ("at most", file.upper_bounds)):
            raw = None if bounds is None else bounds.get(field_id)
            value = None if raw is None else decode_bound(kind, raw)
            if value is not None:
                facts.append(f"{word} {render_value(kind, value)}")
        for word, counts in (("NULL", file.null_value_counts), ("NaN", file.nan_value_counts)):
            count = None if counts is None else counts.get(field_id)
            if count is not None:
                facts.append(f"{count:,} {word}")
        name = scan.schema.name_by_id.get(field_id, str(field_id))
        yield f"column {name}: {', '.join(facts) or 'no bounds and no counts'}"


def _delete_text(delete: DataFile) -> str:
    kind = "positions"
    if delete.equality_ids:
        kind = f"equality of columns {', '.join(map(str, delete.equality_ids))}"
    elif delete.is_deletion_vector:
        kind = "deletion vector"
    count = f"{delete.record_count:,} rows" if delete.record_count >= 0 else "rows unknown"
    return f"{delete.path} ({kind}, {count}, sequence number {delete.sequence_number})"
