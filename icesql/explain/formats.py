"""EXPLAIN (FORMAT html) and (FORMAT tree): one self-contained page, and a tree of text.

Names, paths and conditions are untrusted text: the page escapes all of it by ``_safe``, allows no
scripts and loads no resources.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, Final

from icesql.errors import plural
from icesql.explain.files import (
    ExplainedFile,
    ExplainedManifest,
    estimate_text,
    explained_manifests,
)
from icesql.iceberg.expressions.render import render_predicate

if TYPE_CHECKING:
    from icesql.context import QueryContext
    from icesql.query.bound import BoundQuery
    from icesql.scan.plan import ScanPlan


MOST_PARTITIONS: Final = 500
# Most squares for one partition; further files are shown as a number.
MOST_SQUARES: Final = 200
_LONGEST: Final = 300

_STYLE: Final = """
body{font:14px/1.4 system-ui,sans-serif;margin:2em;max-width:75em;color:#222}
h1{font-size:1.3em}h2{font-size:1.1em;margin-top:2em}
code,.path{font-family:ui-monospace,monospace;font-size:.92em;overflow-wrap:anywhere}
table{border-collapse:collapse}td,th{padding:.15em .8em .15em 0;text-align:left;vertical-align:top}
i{display:inline-block;width:.8em;height:.8em;margin:0 1px;border:1px solid #888}
i.kept{background:#2a7de1;border-color:#1b5aa6}i.answered{background:#9bd49b}
.bar{display:inline-block;width:12em;height:.8em;background:#eee;border:1px solid #888}
.bar b{display:block;height:100%;background:#2a7de1}
"""


def page(
    sql: str, described: Mapping[str, Any], plans: Sequence[ScanPlan], query: QueryContext
) -> str:
    """The page for a query's text, the result of ``report.describe`` and its plans."""
    body = "\n".join(_body(sql, described, plans, query))
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>EXPLAIN</title><style>{_STYLE}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def _safe(text: object, most: int = _LONGEST) -> str:
    """Text for a page: escaped, and truncated to ``most`` characters."""
    words = str(text)
    words = words if len(words) <= most else words[: most - 1] + "…"
    printable = "".join(
        each if each.isprintable() or each in "\n\t" else "\ufffd" for each in words
    )
    return escape(printable, quote=True)


def _body(
    sql: str, described: Mapping[str, Any], plans: Sequence[ScanPlan], query: QueryContext
) -> Iterator[str]:
    yield "<h1>What this query reads, and why</h1>"
    yield f"<pre><code>{_safe(sql, 5_000)}</code></pre>"
    yield (
        '<p><i class="kept"></i> read <i class="answered"></i> answered from metadata '
        "<i></i> skipped; point at a square to see why</p>"
    )
    for scan, plan in zip(described["scans"], plans, strict=True):
        yield f"<h2>{_safe(scan['table'])}</h2>"
        yield from _facts(scan, plan)
        yield from _picture(plan, query)
    for condition in described["conditions"]:
        why = f"not pushed: {condition['note']}"
        yield f"<p><code>{_safe(condition['sql'])}</code>: {_safe(why)}</p>"


def _facts(scan: Mapping[str, Any], plan: ScanPlan) -> Iterator[str]:
    facts: list[tuple[str, object]] = [
        ("snapshot", scan["snapshot"] or "none"),
        ("filter", scan["filter"]),
        ("read", estimate_text(plan)),
        ("manifests", _of(scan["data_manifests"]["kept"], scan["data_manifests"]["total"])),
    ]
    for each in scan["conditions"]:
        outcome = f"as {each['predicate']}" if each["pushed"] else f"not pushed: {each['note']}"
        facts.append(("condition", f"{each['sql']} {outcome}"))
    for each in scan["run_time_filters"]:
        known = "part of the filter" if each["known"] else "known when run"
        facts.append(("run-time filter", f"{known}: {each['condition']}"))
    rows = "".join(f"<tr><th>{_safe(k)}</th><td>{_safe(v)}</td></tr>" for k, v in facts)
    yield f"<table>{rows}</table>"


def _of(some: int, total: int) -> str:
    return f"{some:,} of {total:,} read"


def _picture(plan: ScanPlan, query: QueryContext) -> Iterator[str]:
    """A row for each partition: the share of bytes read, and a square for each file."""
    partitions: dict[str, list[ExplainedFile]] = {}
    unopened = []
    for manifest in explained_manifests(plan, query):
        if not manifest.decision.kept:
            unopened.append(manifest)
        for file in manifest.files:
            partitions.setdefault(file.partition, []).append(file)
    if partitions:
        yield "<table><tr><th>partition</th><th>bytes read</th><th>files</th></tr>"
        for name, files in sorted(partitions.items())[:MOST_PARTITIONS]:
            yield _partition(name, files)
        yield "</table>"
    if len(partitions) > MOST_PARTITIONS:
        yield f"<p>… and {len(partitions) - MOST_PARTITIONS:,} more partitions</p>"
    for each in unopened[:MOST_PARTITIONS]:
        count = each.manifest.entries_count
        known = "" if count is None else f" ({plural(count, 'file')})"
        path = f'<span class="path">{_safe(each.manifest.manifest_path)}</span>'
        yield f"<p>manifest {path}{known} {_safe(each.decision)}</p>"
    if len(unopened) > MOST_PARTITIONS:
        more = len(unopened) - MOST_PARTITIONS
        yield f"<p>… and {more:,} more manifests that are not opened</p>"


def _partition(name: str, files: Sequence[ExplainedFile]) -> str:
    size = sum(max(each.size, 0) for each in files)
    read = sum(max(each.size, 0) for each in files if each.decision.kept)
    share = 100 * read // size if size else 0
    kept = sum(each.decision.kept for each in files)
    squares = "".join(_squares(files[:MOST_SQUARES]))
    more = f" … {len(files) - MOST_SQUARES:,} more" if len(files) > MOST_SQUARES else ""
    return (
        f"<tr><td>{_safe(name)}</td>"
        f'<td><span class="bar"><b style="width:{share}%"></b></span> {read:,} of {size:,}</td>'
        f"<td>{_of(kept, len(files))}<br>{squares}{more}</td></tr>"
    )


def _squares(files: Iterable[ExplainedFile]) -> Iterator[str]:
    for each in files:
        kind = "kept" if each.decision.kept else ""
        kind = "answered" if each.decision.stage == "count" else kind
        yield f'<i class="{kind}" title="{_safe(f"{each.path}: {each.decision}")}"></i>'


# ------------------------------------------------------------------ tree


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
