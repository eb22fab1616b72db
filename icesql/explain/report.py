"""EXPLAIN: describes the reads of each scan, as values and as lines of text.

EXPLAIN reads metadata only. For each scan it shows the snapshot, the Iceberg expression, the target
of each pushed condition, the skipped files with the stage and value that decided, and the reader of
the others.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final, cast

from msgspec.structs import asdict

from icesql.engine.duckdb.relations.grouping import group_files
from icesql.engine.result import StaticResult
from icesql.errors import json_document, plural, printable
from icesql.explain.files import estimate
from icesql.frozen import Frozen
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Predicate
from icesql.iceberg.expressions.projection import inclusive
from icesql.iceberg.expressions.render import render_predicate
from icesql.storage.credentials import redact_urls

if TYPE_CHECKING:
    from icesql.context import QueryContext
    from icesql.engine.engines import Engine, EngineChoice, PlannedResult
    from icesql.query.bound import BoundQuery, KeyEdge, PushedConjunct
    from icesql.scan.plan import ScanPlan, TableScan
    from icesql.sql.statement import Explain

MOST_SKIPPED: Final = 20
MOST_RESIDUALS: Final = 10
_ROWS_AT_ONCE: Final = 10_000


class Measured(Frozen):
    """Measurements of EXPLAIN ANALYZE; ``groups`` holds how each file was read."""

    bind_seconds: float
    plan_seconds: float
    read_seconds: float
    rows: int
    groups: tuple[str, ...]


def measure(
    engine: Engine,
    bound: BoundQuery,
    plans: Sequence[ScanPlan],
    query: QueryContext,
    bind_seconds: float,
) -> Measured:
    """Run a query to its last row. Raises as running it."""
    started = time.perf_counter()
    rows = 0
    with closing(engine.execute(bound, plans, query)) as result:
        while chunk := result.fetch(_ROWS_AT_ONCE):
            rows += len(chunk)
    return Measured(
        bind_seconds=bind_seconds,
        plan_seconds=sum(plan.planning_seconds for plan in plans),
        read_seconds=time.perf_counter() - started,
        rows=rows,
        groups=tuple(result.groups),
    )


def engine_plan(
    engine: Engine, bound: BoundQuery, plans: Sequence[ScanPlan], query: QueryContext
) -> StaticResult:
    """The rows of EXPLAIN (ENGINE): lines of the engine's own plan; secrets in URLs are masked.

    ``__scan_0`` is the first table of the query. Raises as starting the query.
    """
    with closing(engine.execute(bound, plans, query)) as result:
        lines = [
            (printable(redact_urls(line), lines=True),)
            for line in cast("PlannedResult", result).engine_plan()
        ]
    return StaticResult([("plan", "varchar")], lines)


def explain(
    bound: BoundQuery,
    plans: Sequence[ScanPlan],
    query: QueryContext,
    statement: Explain,
    engine: EngineChoice,
    keys: Sequence[KeyEdge] = (),
    measured: Measured | None = None,
) -> StaticResult:
    """The rows of EXPLAIN: lines, or one document, JSON or a page of HTML.

    See ``describe``. Secrets in URLs are masked. Raises ProgrammingError for a file that is in no
    table of the query.
    """
    if statement.file is not None:
        from icesql.explain.files import one_file

        return _lines_of(one_file(statement.file, plans, query))
    if statement.format == "tree":
        from icesql.explain.formats import tree

        return _lines_of(tree(bound, plans, query))
    described = describe(bound, plans, query, engine=engine, keys=keys, measured=measured)
    if statement.format == "json":
        document = json_document(described, indent=2)
        return StaticResult([("plan", "json")], [(redact_urls(document),)])
    if statement.format == "html":
        from icesql.explain.formats import page

        document = page(redact_urls(statement.query.text), described, plans, query)
        return StaticResult([("plan", "html")], [(redact_urls(document),)])
    return _lines_of(as_text(described))


def _lines_of(lines: Sequence[str]) -> StaticResult:
    shown = [(printable(redact_urls(line)),) for line in lines]
    return StaticResult([("plan", "varchar")], shown)


def as_text(described: Mapping[str, Any]) -> list[str]:
    """The output lines of EXPLAIN for the result of ``describe``."""
    lines: list[str] = []
    for scan in described["scans"]:
        lines += _scan_lines(scan)
    for condition in described["conditions"]:
        lines.append(f"condition {condition['sql']}: not pushed: {condition['note']}")
    if not described["scans"]:
        lines.append("no tables are read")
    if described["verify"] != "normal":
        lines.append(
            f"verify {described['verify']}: every file is read in full before the query runs"
        )
    engine = described["engine"]
    if engine["reason"] is not None:
        lines.append(engine["reason"])
    elif engine["name"] != "local":
        lines.append(f"engine {engine['name']}")
    if "measured" in described:
        lines += _measured_lines(described["measured"])
    return lines


def describe(
    bound: BoundQuery,
    plans: Sequence[ScanPlan],
    query: QueryContext,
    *,
    engine: EngineChoice,
    keys: Sequence[KeyEdge] = (),
    measured: Measured | None = None,
) -> dict[str, Any]:
    """The output of EXPLAIN as JSON values, with the measurements of EXPLAIN ANALYZE, if given.

    ``plans`` are the plans of the scans of ``bound``, in order, made with ``explain`` set.
    ``keys`` are the run-time filters, whose values are known if the query was ``measured``. In the
    result, ``scans`` are in the same order; ``conditions`` are those that belong to no single scan.
    """
    others = [
        {"sql": each.sql, "pushed": "", "predicate": None, "note": each.note}
        for each in bound.pushed
        if each.scan is None
    ]
    described: dict[str, Any] = {
        "scans": [
            _described_scan(index, plan, bound, query, engine)
            | {"run_time_filters": _run_time_filters(index, keys, plans, measured is not None)}
            for index, plan in enumerate(plans)
        ],
        "conditions": others,
        "verify": query.settings.verify,
        "engine": {"name": engine.name, "reason": engine.reason},
    }
    if measured is not None:
        described["measured"] = asdict(measured)
    return described


def _described_scan(
    index: int, plan: ScanPlan, bound: BoundQuery, query: QueryContext, engine: EngineChoice
) -> dict[str, Any]:
    scan, report, resolved = plan.scan, plan.report, bound.resolved[index]
    stores = engine.name == "local"
    groups = group_files(plan.files, plan.context, query.settings, stores=stores)
    residuals = dict.fromkeys(render_predicate(task.residual, scan.schema) for task in plan.files)
    return {
        "index": index,
        "table": scan.table.name,
        "metadata_table": scan.metadata_table,
        "snapshot_id": None if scan.snapshot is None else scan.snapshot.snapshot_id,
        "snapshot": resolved.text(query),
        "ref": scan.ref,
        "note": resolved.note or "",
        "after_last_commit": resolved.after_last_commit,
        "schema_id": scan.schema.schema_id,
        "filter": render_predicate(scan.row_filter, scan.schema),
        "conditions": [_condition(each, scan) for each in bound.pushed if each.scan == index],
        "limit": scan.limit,
        "columns": [column.name for column in scan.projection.fields],
        "bytes": plan.projected_bytes,
        "estimate": estimate(plan),
        "data_manifests": {
            "total": report.total_data_manifests,
            "kept": report.scanned_data_manifests,
            "skipped": report.skipped_data_manifests,
        },
        "delete_manifests": {
            "total": report.total_delete_manifests,
            "kept": report.scanned_delete_manifests,
            "skipped": report.skipped_delete_manifests,
        },
        "data_files": {"kept": report.result_data_files, "skipped": report.skipped_data_files},
        "counted": {"files": plan.files_counted, "added": list(plan.counted)},
        "delete_files": {
            "kept": report.distinct_delete_files,
            "skipped": report.skipped_delete_files,
            "equality": report.equality_delete_files,
            "positional": report.positional_delete_files,
            "dvs": report.dvs,
        },
        "limit_reached": plan.limit_reached,
        "planned_by": None if plan.planned_by is None else f"the catalog ({plan.planned_by})",
        "tasks": len(plan.tasks),
        "residuals": list(residuals),
        "groups": [{"label": each.label, "files": len(each.tasks)} for each in groups],
        "skipped": [asdict(each) for each in plan.skipped],
    }


def _run_time_filters(
    index: int, keys: Sequence[KeyEdge], plans: Sequence[ScanPlan], known: bool
) -> list[dict[str, Any]]:
    """The filters of a scan that are computed by reading another scan first."""
    return [
        {
            "column": f"CAST({edge.target_name} AS DATE)" if edge.of_day else edge.target_name,
            "source": edge.source,
            "source_table": plans[edge.source].scan.table.name,
            "source_column": edge.source_name,
            "condition": edge.text,
            "known": known,
        }
        for edge in keys
        if edge.target == index
    ]


def _condition(pushed: PushedConjunct, scan: TableScan) -> dict[str, Any]:
    predicate = pushed.predicate
    text = None if predicate is None else render_predicate(predicate, scan.schema)
    return {
        "sql": pushed.sql,
        "pushed": "" if predicate is None else _where_pushed(predicate, scan),
        "predicate": text,
        "note": pushed.note,
    }


def _where_pushed(predicate: Predicate, scan: TableScan) -> str:
    """Whether a predicate can skip files by partition, or only by their column bounds."""
    specs = scan.table.metadata.specs.values()
    helped = [inclusive(predicate, spec, scan.schema) is not ALWAYS_TRUE for spec in specs]
    if helped and all(helped):
        return "partition and metrics"
    return "partition of some specs, and metrics" if any(helped) else "metrics"


# ------------------------------------------------------------------ text


def _scan_lines(scan: Mapping[str, Any]) -> Iterator[str]:
    name = scan["metadata_table"]
    if name == scan["table"]:
        # A statement in FROM, such as SHOW, has no snapshot.
        yield f"scan {scan['index']}: {name}"
        yield f"  filter: {scan['filter']}"
        return
    yield f"scan {scan['index']}: {scan['table']}{'' if name is None else f'.{name}'}"
    yield f"  snapshot: {scan['snapshot'] or 'none, the table is empty'}"
    if scan["after_last_commit"] is not None:
        yield f"    the current snapshot: {scan['after_last_commit']} is after the last commit"
    yield f"  schema: {scan['schema_id']}"
    yield f"  filter: {scan['filter']}"
    for condition in scan["conditions"]:
        yield f"    {_condition_line(condition)}"
    for each in scan["run_time_filters"]:
        known = "part of the filter" if each["known"] else "known when run"
        keys = f"scan {each['source']}: {each['source_table']}.{each['source_column']}"
        yield f"  run-time filter: {known}: {each['column']} has to be among {keys}"
    if scan["limit"] is not None:
        stopped = " (planning stopped early)" if scan["limit_reached"] else ""
        yield f"  limit: {scan['limit']} rows{stopped}"
    columns = ", ".join(scan["columns"]) or "none, only rows are counted"
    if name is not None:
        yield f"  columns: {columns}"
        yield "  rows: from metadata alone, except those of position_deletes"
        return
    yield f"  columns: {columns} ({scan['bytes']:,} bytes to read)"
    rows = scan["estimate"]["rows"]
    yield "  rows: " + ("unknown before reading" if rows is None else f"at most {rows:,}")
    if scan["planned_by"] is not None:
        yield f"  planned by: {scan['planned_by']}"
    else:
        yield f"  manifests: {_counts(scan['data_manifests'])}"
    if scan["delete_manifests"]["total"]:
        yield f"  delete manifests: {_counts(scan['delete_manifests'])}"
    yield from _skipped_lines(scan["skipped"], "manifest")
    files = scan["data_files"]
    counted = scan["counted"]["files"]
    from_metadata = f", {counted:,} counted from metadata" if counted else ""
    skipped = files["skipped"] - counted
    if scan["planned_by"] is not None:
        # The catalog does not report the files that it skipped.
        yield f"  data files: {files['kept']:,} to read"
    else:
        yield f"  data files: {files['kept']:,} kept, {skipped:,} skipped{from_metadata}"
    yield from _skipped_lines(scan["skipped"], "file")
    deletes = scan["delete_files"]
    if deletes["kept"] or deletes["skipped"]:
        kinds = ", ".join(
            f"{deletes[kind]:,} {label}"
            for kind, label in (
                ("positional", "positional"),
                ("equality", "equality"),
                ("dvs", "deletion vectors"),
            )
            if deletes[kind]
        )
        kinds = f" ({kinds})" if kinds else ""
        yield f"  delete files: {deletes['kept']:,} kept{kinds}, {deletes['skipped']:,} skipped"
        yield from _skipped_lines(scan["skipped"], "delete")
    yield f"  tasks: {scan['tasks']:,}"
    residuals = scan["residuals"]
    for residual in residuals[:MOST_RESIDUALS]:
        yield f"  residual: {residual}"
    if len(residuals) > MOST_RESIDUALS:
        yield f"  … and {len(residuals) - MOST_RESIDUALS:,} more residuals"
    for group in scan["groups"]:
        yield f"  reader: {group['label']} ({plural(group['files'], 'file')})"


def _condition_line(condition: Mapping[str, Any]) -> str:
    if not condition["pushed"]:
        return f"{condition['sql']}: not pushed: {condition['note']}"
    rest = f"; left to the engine: {condition['note']}" if condition["note"] else ""
    return f"{condition['sql']}: pushed to {condition['pushed']} as {condition['predicate']}{rest}"


def _counts(counts: Mapping[str, int]) -> str:
    return f"{counts['total']:,} in all, {counts['kept']:,} read, {counts['skipped']:,} skipped"


def _skipped_lines(skipped: Sequence[Mapping[str, str]], kind: str) -> Iterator[str]:
    records = [each for each in skipped if each["kind"] == kind]
    for each in records[:MOST_SKIPPED]:
        if each["stage"] == "count":
            yield f"    counted {each['path']} from metadata: {each['reason']}"
            continue
        why = f"{each['predicate']}; {each['reason']}"
        yield f"    skipped {each['path']} by {each['stage']}: {why}"
    if len(records) > MOST_SKIPPED:
        yield f"    … and {len(records) - MOST_SKIPPED:,} more"


def _measured_lines(measured: Mapping[str, Any]) -> Iterator[str]:
    yield f"rows: {measured['rows']:,}"
    for stage in ("bind", "plan", "read"):
        yield f"{stage}: {measured[f'{stage}_seconds']:.3f} s"
    for name in dict.fromkeys(measured["groups"]):
        yield f"read by {name}: {plural(measured['groups'].count(name), 'file')}"
