"""The diagnosis of a table or of a catalog as text and as HTML."""

from __future__ import annotations

import html
import textwrap
from datetime import UTC, datetime
from typing import Final

from icesql.errors import plural, printable
from icesql.health.finding import WEIGHTS, CatalogDiagnosis, Diagnosis, Finding, Gain
from icesql.scan.report_text import bytes_text

_WIDTH: Final = 100
_STYLE: Final = (
    "body{font:14px system-ui,sans-serif;margin:2em}table{border-collapse:collapse;margin:1em 0}"
    "td,th{border:1px solid #ccc;padding:.3em .6em;text-align:left;vertical-align:top}"
    "code{white-space:pre-wrap;word-break:break-word}caption{text-align:left;font-weight:bold}"
)


def as_text(diagnosis: Diagnosis) -> str:
    """A paragraph for each finding; the last line explains how to run the statements."""
    if diagnosis.error:
        return printable(f"{diagnosis.table}: {diagnosis.error}")
    if not diagnosis.findings:
        return printable(f"{diagnosis.table}: nothing found")
    lines = [f"{diagnosis.table}: {_count(len(diagnosis.findings))}"]
    for number, each in enumerate(diagnosis.findings, 1):
        lines += ["", f"{number}. {each.name} ({each.weight})"]
        lines += _wrapped(f"{each.told}.") + _wrapped(f"Cost: {each.cost}.")
        if promised := _promise(each):
            lines += _wrapped(promised)
        if each.refusal:
            lines += _wrapped(f"icesql cannot mend it: {each.refusal}.")
        elif each.statement:
            lines.append(f"   {each.statement};")
        if each.refusal or _plain(each.spark_statement) != each.statement:
            lines.append(f"   {_spark(each)};")
    if any("CALL system" in each.statement for each in diagnosis.findings):
        lines += ["", "In Spark SQL, write the catalog's name in front of system. EXPLAIN CALL "
                      "shows what a call would do."]  # fmt: skip
    return "\n".join(map(printable, lines))


def as_html(diagnosis: Diagnosis) -> str:
    """An HTML table, for a notebook or a page."""
    rows = "".join(
        "<tr>"
        + "".join(
            f"<td>{_escaped(text)}</td>"
            for text in (each.weight, each.name, f"{each.told}. {each.cost}.", _promise(each))
        )
        + f"<td><code>{_escaped(_spark(each) if each.refusal else each.statement)}</code></td></tr>"
        for each in diagnosis.findings
    )
    return (
        f"<table><caption>{_escaped(diagnosis.table)}: "
        f"{_count(len(diagnosis.findings))}</caption><thead><tr><th>weight</th><th>finding</th>"
        "<th>what it is and costs</th><th>promise</th><th>statement</th></tr></thead>"
        f"<tbody>{rows}</tbody></table>"
    )


def catalog_as_text(found: CatalogDiagnosis) -> str:
    """A paragraph for each table with findings or an error, and a line for all others."""
    told = [each for each in found.tables if each.findings or each.error]
    lines = [_heading(found)]
    if gain := gain_text(found.gain):
        lines.append(f"Predicted gain: {gain}.")
    for number, each in enumerate(told, 1):
        lines.append("")
        if each.error:
            lines += _wrapped(f"{number}. {each.table}: {one_line(each.error)}", "")
            continue
        lines += _wrapped(f"{number}. {each.table} ({_weights(each)}): {_kinds(each)}", "")
        if gain := gain_text(each.gain):
            lines += _wrapped(f"Predicted gain: {gain}.")
    if healthy := len(found.tables) - len(told):
        lines += ["", f"{plural(healthy, 'table')}: nothing found"]
    if any(each.findings for each in told):
        lines += ["", "icesql doctor TABLE shows the statements that mend one."]
    return "\n".join(map(printable, lines))


def catalog_as_html(found: CatalogDiagnosis) -> str:
    """An HTML table with a row for each table of the catalog."""
    rows = "".join(map(_row, found.tables))
    heads = ("files", "bytes", "requests", "seconds of planning")
    return (
        f"<table><caption>{_escaped(_heading(found))}</caption><thead><tr>"
        "<th>table</th><th>findings</th><th>what</th>"
        + "".join(f"<th>{each} that would be saved</th>" for each in heads)
        + f"</tr></thead><tbody>{rows}</tbody></table>"
    )


def as_page(found: CatalogDiagnosis, place: str = "") -> str:
    """An HTML page: the table of the catalog, followed by the findings of each table.

    ``place`` is the catalog's location.
    """
    from importlib.metadata import version

    about = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, icesql {version('icesql')}"
    parts = (
        f"<details open><summary>{_escaped(each.table)} ({_weights(each)})</summary>{as_html(each)}"
        "</details>"
        for each in found.tables
        if each.findings
    )
    title = _escaped(f"icesql doctor: {place or found.catalog}")
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{title}</title><style>{_STYLE}</style></head><body><h1>{title}</h1>"
        f"<p>{about}</p>"
        f"{catalog_as_html(found)}{''.join(parts)}</body></html>"
    )


def gain_text(gain: Gain) -> str:
    """``120 files, 3.4 GB, 140 requests, 0.02 s of planning``; "" for no gain."""
    parts = (
        gain.files and plural(gain.files, "file"),
        gain.bytes and bytes_text(gain.bytes),
        gain.requests and plural(gain.requests, "request"),
        gain.planning_seconds >= 0.001 and f"{gain.planning_seconds:,.3f} s of planning",
    )
    return ", ".join(each for each in parts if each)


def _row(table: Diagnosis) -> str:
    gain = table.gain
    cells = (
        table.table,
        "error" if table.error else _weights(table),
        table.error or _kinds(table),
        f"{gain.files:,}",
        bytes_text(gain.bytes),
        f"{gain.requests:,}",
        f"{gain.planning_seconds:,.3f}",
    )
    return "<tr>" + "".join(f"<td>{_escaped(each)}</td>" for each in cells) + "</tr>"


def _heading(found: CatalogDiagnosis) -> str:
    sick = sum(bool(each.findings) for each in found.tables)
    text = f"{found.catalog}: {plural(len(found.tables), 'table')}, {sick:,} with findings"
    return text + (f", {found.errors:,} with errors" if found.errors else "")


def _weights(table: Diagnosis) -> str:
    counts = {w: sum(each.weight == w for each in table.findings) for w in WEIGHTS}
    return ", ".join(f"{n} {weight}" for weight, n in counts.items() if n) or "nothing found"


def _kinds(table: Diagnosis) -> str:
    return ", ".join(dict.fromkeys(each.name for each in table.findings))


def one_line(text: str) -> str:
    """The text without line breaks."""
    return " ".join(text.split())


def _escaped(text: str) -> str:
    return html.escape(printable(text))


def _spark(finding: Finding) -> str:
    return f"in Spark: {finding.spark_statement}"


def _plain(spark_statement: str) -> str:
    """The statement without the catalog's name, which the report's last line explains."""
    return spark_statement.replace("CALL catalog.", "CALL ").replace("TABLE catalog.", "TABLE ")


def _promise(finding: Finding) -> str:
    if finding.now is None or finding.after is None:
        return ""
    form = ".1%" if finding.measure.startswith("share") else ",.6g"
    return f"{finding.measure}: {finding.now:{form}} → {finding.after:{form}}"


def _count(number: int) -> str:
    return plural(number, "finding") if number else "nothing found"


def _wrapped(text: str, first: str = "   ") -> list[str]:
    return textwrap.wrap(
        text, _WIDTH, initial_indent=first, subsequent_indent="   ", break_on_hyphens=False
    )
