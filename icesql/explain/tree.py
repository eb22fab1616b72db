"""EXPLAIN (FORMAT tree): table, snapshot, manifests, files and row groups, with decisions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from icesql.errors import plural
from icesql.explain.estimate import estimate_text
from icesql.explain.files import ExplainedFile, ExplainedManifest, explained_manifests
from icesql.iceberg.expressions.render import render_predicate

if TYPE_CHECKING:
    from icesql.context import QueryContext
    from icesql.query.bound import BoundQuery
    from icesql.scan.plan import ScanPlan

MOST_MANIFESTS: Final = 50
MOST_FILES: Final = 20


def tree(bound: BoundQuery, plans: Sequence[ScanPlan], query: QueryContext) -> list[str]:
    """The lines of the tree of each scan; long lists show their first entries."""
    lines: list[str] = []
    for plan, resolved in zip(plans, bound.resolved, strict=True):
        scan = plan.scan
        name = scan.metadata_table or ""
        if name == scan.table.name:
            lines += [f"rows of {name}", f"   {estimate_text(plan)}"]
            continue
        lines.append(f"table {scan.table.name}{name and f'.{name}'}")
        lines.append(f"   {estimate_text(plan)}")
        lines.append(f"└─ snapshot {resolved.text(query) or 'none, the table is empty'}")
        children = [_manifest_lines(each, plan) for each in explained_manifests(plan, query)]
        lines += _below("   ", children, MOST_MANIFESTS, "manifests")
    return lines or ["no tables are read"]


def _manifest_lines(manifest: ExplainedManifest, plan: ScanPlan) -> list[str]:
    path = manifest.manifest.manifest_path
    if not manifest.decision.kept:
        count = manifest.manifest.entries_count
        files = "" if count is None else f" ({plural(count, 'file')})"
        return [f"manifest {path}{files} {manifest.decision}"]
    kept = sum(each.decision.kept for each in manifest.files)
    head = f"manifest {path}: {kept:,} of {len(manifest.files):,} files kept"
    # Kept files first: they matter most to the reader.
    ordered = sorted(manifest.files, key=lambda each: not each.decision.kept)
    children = [[*_file_lines(each, plan)] for each in ordered]
    return [head, *_below("", children, MOST_FILES, "files")]


def _file_lines(file: ExplainedFile, plan: ScanPlan) -> Iterator[str]:
    rows = f"{file.rows:,} rows" if file.rows >= 0 else "rows unknown"
    yield f"file {file.path}: {file.partition}, {rows}, {file.size:,} bytes, {file.decision}"
    if file.task is None:
        return
    details = []
    if file.row_groups:
        details.append(plural(file.row_groups, "row group"))
    if file.task.deletes:
        details.append(plural(len(file.task.deletes), "delete file"))
    details.append(f"residual {render_predicate(file.task.residual, plan.scan.schema)}")
    yield f"└─ {', '.join(details)}"


def _below(indent: str, children: Sequence[list[str]], most: int, noun: str) -> Iterator[str]:
    shown = list(children[:most])
    if len(children) > most:
        shown.append([f"… and {len(children) - most:,} more {noun}"])
    for number, lines in enumerate(shown):
        last = number == len(shown) - 1
        for place, line in enumerate(lines):
            branch = ("└─ " if last else "├─ ") if place == 0 else ("   " if last else "│  ")
            yield f"{indent}{branch}{line}"
