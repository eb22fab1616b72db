"""EXPLAIN: what each scan reads and why, as values and as lines of text.

EXPLAIN reads metadata only. For each scan it shows the snapshot, the Iceberg expression, where
each condition was pushed, what was skipped at which stage by which value, and what reads the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Predicate
from icesql.iceberg.expressions.projection import inclusive
from icesql.iceberg.expressions.render import render_predicate

if TYPE_CHECKING:
    from icesql.context import QueryContext
    from icesql.query.bound import BoundQuery, PushedConjunct
    from icesql.scan.plan import ScanPlan
    from icesql.scan.table_scan import TableScan

MOST_SKIPPED: Final = 20
MOST_RESIDUALS: Final = 10

Labels = Sequence[tuple[str, int]]


def as_text(described: Mapping[str, Any]) -> list[str]:
    """The output lines of EXPLAIN for the value of ``describe``."""
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


def as_json(described: Mapping[str, Any]) -> list[str]:
    """The output of EXPLAIN (FORMAT json) for the value of ``describe``."""
    import json

    return [json.dumps(described, indent=2, ensure_ascii=False)]


def describe(
    bound: BoundQuery,
    plans: Sequence[ScanPlan],
    labels: Sequence[Labels],
    query: QueryContext,
    *,
    measured: Mapping[str, Any] | None = None,
    engine: Sequence[str] = ("local",),
) -> dict[str, Any]:
    """The facts that EXPLAIN prints, as JSON values, with those that EXPLAIN ANALYZE ``measured``.

    ``plans`` are the plans of the scans of ``bound``, in order, made with ``explain`` set;
    ``labels`` holds the readers of each scan's files as (label, number of files). ``measured`` maps
    ``rows``, ``groups`` and names that end in ``_seconds``. ``engine`` is the name of the engine,
    and the reason if it was chosen for this query. ``scans`` are in order; ``conditions`` are
    those that belong to no single scan.
    """
    scans = []
    for index, (scan, plan, groups) in enumerate(zip(bound.scans, plans, labels, strict=True)):
        resolved = bound.resolved[index] if index < len(bound.resolved) else None
        report = plan.report
        conditions = [_condition(each, scan) for each in bound.pushed if each.scan == index]
        residuals = dict.fromkeys(
            render_predicate(task.residual, scan.schema) for task in plan.files
        )
        scans.append(
            {
                "index": index,
                "table": scan.table.name,
                "snapshot_id": None if scan.snapshot is None else scan.snapshot.snapshot_id,
                "snapshot": None if resolved is None else resolved.snapshot,
                "ref": scan.ref,
                "note": "" if resolved is None else resolved.note,
                "schema_id": scan.schema.schema_id,
                "filter": render_predicate(scan.row_filter, scan.schema),
                "conditions": conditions,
                "limit": scan.limit,
                "columns": [column.name for column in scan.projection.fields],
                "bytes": plan.projected_bytes,
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
                "data_files": {
                    "kept": report.result_data_files,
                    "skipped": report.skipped_data_files,
                },
                "delete_files": {
                    "kept": report.distinct_delete_files,
                    "skipped": report.skipped_delete_files,
                    "equality": report.equality_delete_files,
                    "positional": report.positional_delete_files,
                    "dvs": report.dvs,
                },
                "limit_reached": plan.limit_reached,
                "tasks": len(plan.tasks),
                "residuals": list(residuals),
                "groups": [{"label": label, "files": files} for label, files in groups],
                "skipped": [
                    {
                        "kind": each.kind,
                        "path": each.path,
                        "stage": each.stage,
                        "predicate": each.predicate,
                        "reason": each.reason,
                    }
                    for each in plan.skipped
                ],
            }
        )
    others = [
        {"sql": each.sql, "pushed": "", "predicate": None, "note": each.note}
        for each in bound.pushed
        if each.scan is None
    ]
    name, *why = engine
    described: dict[str, Any] = {
        "scans": scans,
        "conditions": others,
        "verify": query.settings.verify,
        "engine": {"name": name, "reason": why[0] if why else None},
    }
    if measured is not None:
        described["measured"] = dict(measured)
    return described


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
    yield f"scan {scan['index']}: {scan['table']}"
    yield f"  snapshot: {scan['snapshot'] or 'none, the table is empty'}"
    if "after the last commit" in scan["note"]:
        yield f"    {scan['note'].partition(' (')[2].rstrip(')')}"
    yield f"  schema: {scan['schema_id']}"
    yield f"  filter: {scan['filter']}"
    for condition in scan["conditions"]:
        yield f"    {_condition_line(condition)}"
    if scan["limit"] is not None:
        stopped = " (planning stopped early)" if scan["limit_reached"] else ""
        yield f"  limit: {scan['limit']} rows{stopped}"
    columns = ", ".join(scan["columns"]) or "none, only rows are counted"
    yield f"  columns: {columns} ({scan['bytes']:,} bytes to read)"
    yield f"  manifests: {_counts(scan['data_manifests'])}"
    if scan["delete_manifests"]["total"]:
        yield f"  delete manifests: {_counts(scan['delete_manifests'])}"
    yield from _skipped_lines(scan["skipped"], "manifest")
    files = scan["data_files"]
    yield f"  data files: {files['kept']:,} kept, {files['skipped']:,} skipped"
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
        yield f"  reader: {group['label']} ({_plural(group['files'], 'file')})"


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
        why = f"{each['predicate']}; {each['reason']}"
        yield f"    skipped {each['path']} by {each['stage']}: {why}"
    if len(records) > MOST_SKIPPED:
        yield f"    … and {len(records) - MOST_SKIPPED:,} more"


def _measured_lines(measured: Mapping[str, Any]) -> Iterator[str]:
    yield f"rows: {measured['rows']:,}"
    for name, value in measured.items():
        if name.endswith("_seconds"):
            yield f"{name.removesuffix('_seconds')}: {value:.3f} s"
    groups = list(measured.get("groups") or ())
    for name in dict.fromkeys(groups):
        yield f"read by {name}: {_plural(groups.count(name), 'file')}"


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
