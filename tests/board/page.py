"""The page of the manual that shows ``results.json``."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from tests.board.judge import RIGHT, VERDICTS
from tests.board.questions import load

RESULTS: Final = Path(__file__).parent / "results.json"
PAGE: Final = Path(__file__).parents[2] / "icesql" / "manual" / "reference" / "board.md"
_PER_ENGINE_EXAMPLES: Final = 3


def results() -> dict[str, Any]:
    """The results of the last run."""
    return json.loads(RESULTS.read_text(encoding="utf-8"))


def _table(head: list[str], rows: Iterable[list[Any]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def board() -> str:
    """The board: verdicts by engine, by paragraph of the specification, and what is not right."""
    run = results()
    tables, questions = load()
    engines = run["engines"]
    counts = {
        name: Counter(v for v, _ in each["verdicts"].values()) for name, each in engines.items()
    }
    parts = [
        "# The board",
        "What engines that read Iceberg answer to the same questions of the same tables.",
        f"{len(questions)} questions to {len(tables)} tables that Iceberg's Java library and Spark wrote, most of them\n"
        "hard on purpose: equality deletes, deletion vectors, ORC and Avro, evolved schemas and partitions,\n"
        "format 3. Each table lies where its own metadata says, and each engine is asked in an environment of\n"
        "its own. An answer is known from Java's own readers, of which Spark's is one; where they and the\n"
        "specification differ, the specification's text decides. icesql's own tests use these tables.\n"
        "DuckDB's release is the last whose extension PyPI has.",
        f"Run on {run['date']}, {run['machine']}; {run['seconds']:.0f} seconds for a question at most.\nAgain, on your machine:",
        "```sh\npython tests/campaigns board\n```",
        _table(
            ["engine", *VERDICTS],
            [[name, *(counts[name][verdict] for verdict in VERDICTS)] for name in engines],
        ),
        "*Refused*: an error that says what is not supported. *Wrong*: other rows. *Crashed*: any other\nerror, or the process ended.",
        "## Versions",
        "\n".join(
            f"- {name}: "
            + ", ".join(f"{package} {version}" for package, version in each["versions"].items())
            for name, each in engines.items()
        ),
        "## By paragraph of the specification",
        "Right answers. The paragraphs are headings of Iceberg's table specification.",
        _table(["paragraph", "questions", *engines], _by_paragraph(questions, engines)),
        "## By table",
        "Right answers of each table's questions.",
        _table(["table", "questions", *engines], _by_table(questions, engines)),
        "## Not right",
        f"The commonest of each engine, at most {_PER_ENGINE_EXAMPLES} for each verdict; `tests/board/results.json` has all.",
    ]
    for name, each in engines.items():
        lines = list(_failures(each["verdicts"]))
        parts += [f"### {name}", "\n".join(lines) if lines else "Every answer is right."]
    if run["not_asked"]:
        parts += [
            "## Not asked",
            "\n".join(f"- {name}: {why}" for name, why in run["not_asked"].items()),
        ]
    return "\n\n".join(parts) + "\n"


def _right(engine: dict[str, Any], ids: list[str]) -> int:
    return sum(engine["verdicts"][each][0] == RIGHT for each in ids)


def _by_paragraph(questions: list[Any], engines: dict[str, Any]) -> Iterable[list[Any]]:
    for paragraph in sorted({each.paragraph for each in questions}):
        ids = [each.id for each in questions if each.paragraph == paragraph]
        yield [paragraph, len(ids), *(_right(each, ids) for each in engines.values())]


def _by_table(questions: list[Any], engines: dict[str, Any]) -> Iterable[list[Any]]:
    for table in dict.fromkeys(each.table for each in questions):
        ids = [each.id for each in questions if each.table == table]
        yield [f"`{table}`", len(ids), *(_right(each, ids) for each in engines.values())]


def _failures(verdicts: dict[str, tuple[str, str]]) -> Iterable[str]:
    for verdict in VERDICTS[1:]:
        reasons: dict[str, list[str]] = {}
        for question, (each, reason) in verdicts.items():
            if each == verdict:
                reasons.setdefault(_shortened(reason), []).append(question)
        commonest = sorted(reasons.items(), key=lambda item: -len(item[1]))
        for reason, ids in commonest[:_PER_ENGINE_EXAMPLES]:
            more = f" and {len(ids) - 1} more" if ids[1:] else ""
            yield f"- {verdict}, `{ids[0]}`{more}: `` {reason} ``"


def _shortened(reason: str) -> str:
    reason = " ".join(reason.replace("`", "'").split())
    return reason if len(reason) <= 160 else reason[:157] + "…"
