"""Findings: problems of a table in numbers, statements that fix them, and both as text and HTML."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from operator import add
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec.structs import asdict, astuple

from icesql.errors import plural, printable
from icesql.frozen import Frozen
from icesql.quoting import literal, spark_name, spark_string
from icesql.scan.report import bytes_text
from icesql.sql.table_name import name_text

if TYPE_CHECKING:
    from icesql.health.need import Need


# ------------------------------------------------------------------ statements that fix them


class Statement(Frozen):
    """Empty strings if there is no fix. ``spark`` uses ``catalog`` as the catalog's name."""

    icesql: str = ""
    spark: str = ""

    def then(self, other: Statement) -> Statement:
        """This statement followed by another one."""
        return Statement(f"{self.icesql}; {other.icesql}", f"{self.spark}; {other.spark}")


def call(procedure: str, table: Sequence[str], **arguments: Any) -> Statement:
    """``CALL system.procedure``; the table is a positional argument if it is the only one."""
    name = Statement(literal(name_text(table)), spark_string(name_text(table, spark_name)))
    if not arguments:
        texts = [name]
    else:
        given = {"table": name} | {key: _value(value) for key, value in arguments.items()}
        texts = [
            Statement(f"{key} => {each.icesql}", f"{key} => {each.spark}")
            for key, each in given.items()
        ]
    return Statement(
        f"CALL system.{procedure}({', '.join(each.icesql for each in texts)})",
        f"CALL catalog.system.{procedure}({', '.join(each.spark for each in texts)})",
    )


def set_properties(table: Sequence[str], properties: Mapping[str, str]) -> Statement:
    """``ALTER TABLE … SET TBLPROPERTIES``."""
    ours = ", ".join(f"{literal(k)} = {literal(v)}" for k, v in properties.items())
    spark = ", ".join(f"{spark_string(k)} = {spark_string(v)}" for k, v in properties.items())
    return Statement(
        f"ALTER TABLE {name_text(table)} SET TBLPROPERTIES ({ours})",
        f"ALTER TABLE catalog.{name_text(table, spark_name)} SET TBLPROPERTIES ({spark})",
    )


def replace_branch(table: Sequence[str], branch: str, snapshot_id: int) -> Statement:
    """``ALTER TABLE … REPLACE BRANCH``."""
    ours, spark = name_text([branch]), name_text([branch], spark_name)
    return Statement(
        f"ALTER TABLE {name_text(table)} REPLACE BRANCH {ours} AS OF VERSION {snapshot_id}",
        f"ALTER TABLE catalog.{name_text(table, spark_name)} REPLACE BRANCH {spark} "
        f"AS OF VERSION {snapshot_id}",
    )


def column(name: str) -> Statement:
    """A column name as a string literal, for arguments such as ``sort_order``."""
    return Statement(literal(name_text([name])), spark_string(name_text([name], spark_name)))


def constant(text: str) -> Statement:
    """A constant with the same spelling in both."""
    return Statement(text, text)


def _value(value: Any) -> Statement:
    match value:
        case Statement():
            return value
        case str():
            return Statement(literal(value), spark_string(value))
        case Mapping():
            return Statement(
                f"map({', '.join(literal(x) for each in value.items() for x in each)})",
                f"map({', '.join(spark_string(x) for each in value.items() for x in each)})",
            )
        case _:
            return constant(str(value).lower())


# ------------------------------------------------------------------ findings


Weight = Literal["high", "medium", "low"]
WEIGHTS: Final[tuple[Weight, ...]] = ("high", "medium", "low")


class Gain(Frozen):
    """The savings of a statement, as far as they can be computed; 0 if they cannot.

    ``files`` counts data and delete files of the current snapshot, ``bytes`` the freed bytes in the
    store, ``requests`` the manifests and files that planning and reading the whole table opens.
    ``planning_seconds`` is the saved share of the time that reading the manifests took here.
    """

    files: int = 0
    bytes: int = 0
    requests: int = 0
    planning_seconds: float = 0.0

    def __add__(self, other: Gain) -> Gain:
        return Gain(*map(add, astuple(self), astuple(other)))

    def to_dict(self) -> dict[str, Any]:
        """The gain as JSON values."""
        return asdict(self) | {"planning_seconds": round(self.planning_seconds, 6)}


class Finding(Frozen):
    """``name`` is the kind of problem, ``told`` a description, ``cost`` its cost for readers.

    ``mend`` is the statement that fixes it, that of ``need`` if there is one; ``refusal`` is the
    reason why only Spark can run it. ``measure`` is the number that the statement changes: from
    ``now`` to the predicted ``after``, None if it cannot be predicted. ``gain`` leaves out savings
    by the statements of earlier findings, so that the gains of a table add up.
    """

    name: str
    weight: Weight
    told: str
    cost: str
    mend: Statement = Statement()
    measure: str = ""
    now: float | None = None
    after: float | None = None
    refusal: str = ""
    gain: Gain = Gain()
    need: Need | None = None

    @property
    def statement(self) -> str:
        """icesql's statement that fixes the problem; "" if there is none."""
        return "" if self.refusal else self.mend.icesql

    @property
    def spark_statement(self) -> str:
        """Spark's statement that fixes the problem, with the catalog named ``catalog``."""
        return self.mend.spark

    def to_dict(self) -> dict[str, Any]:
        """The finding as JSON values."""
        shown = (
            "name", "weight", "told", "cost", "statement", "spark_statement", "refusal", "measure",
            "now", "after",
        )  # fmt: skip
        return {each: getattr(self, each) for each in shown} | {"gain": self.gain.to_dict()}


class Diagnosis(Frozen):
    """The findings about ``table`` as of ``snapshot_id``, the heaviest first.

    ``error`` is the reason why a table of a catalog could not be examined, "" if it was.
    """

    table: str
    snapshot_id: int | None
    findings: tuple[Finding, ...]
    error: str = ""

    @property
    def gain(self) -> Gain:
        """The savings of all statements that icesql can run."""
        return sum((each.gain for each in self.findings if each.statement), Gain())

    def is_as_heavy_as(self, weight: Weight) -> bool:
        """True if a finding has this weight or a heavier one, or the table has an error."""
        wanted = WEIGHTS[: WEIGHTS.index(weight) + 1]
        return bool(self.error) or any(each.weight in wanted for each in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """The diagnosis as JSON values."""
        return {
            "table": self.table,
            "snapshot_id": self.snapshot_id,
            "gain": self.gain.to_dict(),
            "findings": [each.to_dict() for each in self.findings],
            **({"error": self.error} if self.error else {}),
        }

    def __str__(self) -> str:

        return as_text(self)

    def _repr_html_(self) -> str:

        return as_html(self)


class CatalogDiagnosis(Frozen):
    """The diagnoses of all tables of a catalog, the worst table first."""

    catalog: str
    tables: tuple[Diagnosis, ...]

    @property
    def gain(self) -> Gain:
        """The savings in all tables."""
        return sum((each.gain for each in self.tables), Gain())

    @property
    def errors(self) -> int:
        """The number of tables that could not be examined."""
        return sum(bool(each.error) for each in self.tables)

    def is_as_heavy_as(self, weight: Weight) -> bool:
        """True if one of the tables is."""
        return any(each.is_as_heavy_as(weight) for each in self.tables)

    def to_dict(self) -> dict[str, Any]:
        """The diagnosis as JSON values."""
        return {
            "catalog": self.catalog,
            "gain": self.gain.to_dict(),
            "errors": self.errors,
            "tables": [each.to_dict() for each in self.tables],
        }

    def page(self, place: str = "") -> str:
        """An HTML page without scripts or external resources; shows ``place`` and the time."""

        return as_page(self, place)

    def __str__(self) -> str:

        return catalog_as_text(self)

    def _repr_html_(self) -> str:

        return catalog_as_html(self)


def weight_of(share: float) -> Weight:
    """The weight of a saving that is this share of the whole."""
    return "high" if share >= 0.5 else "medium" if share >= 0.2 else "low"


# ------------------------------------------------------------------ text and HTML


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
