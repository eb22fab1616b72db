"""Cut every statement of the suite at every character: completion never raises, and is quick.

    python tests/campaigns/completion_cut.py [--part 20]

``--part`` takes one statement of so many. It prints how many cuts there were and the slowest.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from icesql.repl.completing.names import Known, Names
from icesql.repl.completing.suggest import suggestions, word_at
from icesql.repl.prompt.typed import inputs, is_complete, runs_by_empty_line

ROOT = Path(__file__).parents[2]


class Source:
    """A catalog whose names need quotes, and whose every table has every version."""

    def tables(self, catalog: str | None = None) -> list[str]:
        return ["shop.orders", 'shop."big orders"', "t"]

    def catalogs(self) -> list[str]:
        return ["here", "archive"]

    def columns(self, table: str) -> list[str]:
        return ["id", "region", "Total Amount", 'a"b', "\x1b[31m"]

    def versions(self, table: str) -> list[Known]:
        return [Known("'audit'", "branch"), Known("7012", "2 h ago, append +3")]

    def times(self, table: str) -> list[Known]:
        return [Known("'2026-01-02 03:04:05'", "2 d ago")]

    def values(self, table: str, column: str) -> list[Known]:
        return [Known("'eu'"), Known("'it''s'")]

    def functions(self) -> list[Known]:
        return [Known("regexp_matches", "(string, regex)"), Known("round")]

    def procedures(self) -> list[Known]:
        about = "(table string, [branch string = main]) · brings small files together"
        return [Known("system.rewrite_data_files", about)]

    def namespaces(self) -> list[str]:
        return ["sales", "web"]

    def paths(self, beginning: str) -> list[str]:
        return [each for each in ("reports/", "reports/q 1.sql") if each.startswith(beginning)]

    def settings(self) -> list[Known]:
        return [Known("engine", "where queries run"), Known("prune")]


def statements() -> list[str]:
    """Every statement of the grammar's lists, the sqllogictests and the tables of forms."""
    found: dict[str, None] = {}
    for name in ("accepted.sql", "rejected.sql"):
        for each in (ROOT / "grammar" / name).read_text(encoding="utf-8").split(";"):
            found[each.strip()] = None
    for path in sorted((ROOT / "tests" / "slt").rglob("*.slt")):
        text = path.read_text(encoding="utf-8")
        pattern = r"^(?:query|statement)[^\n]*\n(.*?)(?=\n----|\n\n|\Z)"
        for block in re.finditer(pattern, text, re.MULTILINE | re.DOTALL):
            found[block[1].strip()] = None
    for path in sorted((ROOT / "tests" / "sql").glob("*forms.tsv")):
        for line in path.read_text(encoding="utf-8").splitlines():
            found.update((cell, None) for cell in line.split("\t") if " " in cell)
    return [each for each in found if each]


def cuts(texts: list[str]) -> Iterator[tuple[str, str]]:
    """Every text in two, at every character."""
    for text in texts:
        for length in range(len(text) + 1):
            yield text[:length], text[length:]


def try_cut(before: str, after: str, names: Names) -> None:
    """Everything that a key at this place asks. Raises AssertionError for what a menu lacks."""
    for each in suggestions(before, names, after):
        assert each.text.isprintable(), each
    assert before.endswith(word_at(before))
    is_complete(before)
    is_complete(before, escapes=True)
    runs_by_empty_line(before + "\n")
    inputs(before)


def main(arguments: list[str]) -> int:
    """Try them all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", type=int, default=1)
    part = parser.parse_args(arguments).part
    names, count, slowest = Names(Source()), 0, (0.0, "")
    chosen = statements()[::part]
    for before, after in cuts(chosen):
        began = time.process_time()
        try_cut(before, after, names)
        slowest = max(slowest, (time.process_time() - began, before))
        count += 1
    print(f"{len(chosen):,} statements, {count:,} cuts; the slowest {slowest[0] * 1000:.0f} ms:")
    print(slowest[1])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
