"""A diagnosis as text and as HTML."""

from __future__ import annotations

import html
import textwrap
from typing import Final

from icesql.doctor.finding import Diagnosis, Finding
from icesql.errors import printable

_WIDTH: Final = 100


def as_text(diagnosis: Diagnosis) -> str:
    """A paragraph for each finding; the last line says what to do with the statements."""
    if not diagnosis.findings:
        return f"{diagnosis.table}: nothing found"
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
            lines.append(f"   in Spark: {each.spark_statement};")
    if any("CALL system" in each.statement for each in diagnosis.findings):
        lines += ["", "In Spark SQL, write the catalog's name in front of system. EXPLAIN CALL "
                      "shows what a call would do."]  # fmt: skip
    return "\n".join(map(printable, lines))


def as_html(diagnosis: Diagnosis) -> str:
    """One table, for a notebook or a page."""
    rows = "".join(
        "<tr>"
        + "".join(
            f"<td>{html.escape(printable(text))}</td>"
            for text in (each.weight, each.name, f"{each.told}. {each.cost}.", _promise(each))
        )
        + f"<td><code>{html.escape(printable(_to_run(each)))}</code></td></tr>"
        for each in diagnosis.findings
    )
    return (
        f"<table><caption>{html.escape(printable(diagnosis.table))}: "
        f"{_count(len(diagnosis.findings))}</caption><thead><tr><th>weight</th><th>finding</th>"
        "<th>what it is and costs</th><th>promise</th><th>statement</th></tr></thead>"
        f"<tbody>{rows}</tbody></table>"
    )


def _plain(spark_statement: str) -> str:
    """Without the catalog's name, of which the last line tells."""
    return spark_statement.replace("CALL catalog.", "CALL ").replace("TABLE catalog.", "TABLE ")


def _to_run(finding: Finding) -> str:
    if finding.refusal:
        return f"in Spark: {finding.spark_statement}"
    return finding.statement


def _promise(finding: Finding) -> str:
    if finding.now is None or finding.after is None:
        return ""
    form = ".1%" if finding.measure.startswith("share") else ",.6g"
    return f"{finding.measure}: {finding.now:{form}} → {finding.after:{form}}"


def _count(number: int) -> str:
    return "nothing found" if not number else f"{number} finding{'s' * (number != 1)}"


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(
        text, _WIDTH, initial_indent="   ", subsequent_indent="   ", break_on_hyphens=False
    )
