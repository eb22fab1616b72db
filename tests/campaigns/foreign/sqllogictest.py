"""Records of sqllogictest files, as SQLite and DuckDB write them, loops expanded.

Keeps only what a judge needs: the SQL, its connection and its line. The expected rows are left
out, since another engine computes them at run time.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.tables import read_table

# More rounds of a loop or an inner loop find nothing more.
MOST_ROUNDS, MOST_INNER_ROUNDS = 12, 3
_LISTS = {name: words.split() for name, words in read_table(__file__, "words.tsv")}


@dataclass(frozen=True)
class Record:
    """SQL of one record; ``line`` is that of its header, ``connection`` "" for the first one.

    ``fails`` says that the suite expects an error.
    """

    line: int
    sql: str
    fails: bool = False
    connection: str = ""


@dataclass(frozen=True)
class _Block:
    line: int
    head: list[str]
    body: tuple[str, ...]


def read_records(path: Path, system: str) -> Iterator[Record]:
    """The records of a file as ``system`` ("duckdb", "sqlite") runs them, in order.

    Ends early at ``halt``, and at a ``require`` of something that may be missing here.
    """
    blocks = list(_blocks(path.read_text(encoding="utf-8", errors="replace")))
    yield from _expanded(blocks, system, {})


def _expanded(blocks: Sequence[_Block], system: str, names: dict[str, str]) -> Iterator[Record]:
    at, skipped = 0, False
    while at < len(blocks):
        block = blocks[at]
        at += 1
        match [_filled(word, names) for word in block.head]:
            case ["halt", *_]:
                return
            case ["require", what, *_] if what.lower() not in _LISTS["<required>"]:
                return
            case ["require-env" | "load" | "unzip" | "include", *_]:
                return
            case ["mode", what, *_]:
                skipped = what == "skip" or (skipped and what != "unskip")
            case ["loop" | "foreach" | "concurrentloop" | "concurrentforeach" as kind, name, *rest]:
                end = _end_of_loop(blocks, at)
                if not kind.startswith("concurrent"):
                    values = _rounds(rest) if kind == "loop" else _listed(rest)
                    most = MOST_INNER_ROUNDS if names else MOST_ROUNDS
                    for value in itertools.islice(values, most):
                        inner = names | dict(
                            zip(name.split(","), value.split(",", name.count(",")), strict=False)
                        )
                        yield from _expanded(blocks[at:end], system, inner)
                at = end + 1
            case ["statement" | "query" as kind, *rest] if not skipped and block.body:
                connection = _connection(kind, rest)
                sql = _filled("\n".join(block.body), names)
                yield Record(block.line, sql, rest[:1] == ["error"], connection)
            case ["skipif", name, *_] if name == system:
                at += 1
            case ["onlyif", name, *_] if name != system:
                at += 1


def _connection(kind: str, words: Sequence[str]) -> str:
    if kind == "statement":
        return words[1] if len(words) > 1 else ""
    label = words[1] if len(words) > 1 else ""
    return label if label.startswith("con") else ""


def _rounds(words: Sequence[str]) -> Iterator[str]:
    first, last, *step = (int(word) for word in words)
    return map(str, range(first, last, *step))


def _listed(words: Sequence[str]) -> Iterator[str]:
    kept: list[str] = []
    for word in words:
        if word.startswith("!"):
            kept = [each for each in kept if each != word[1:]]
        else:
            kept += _LISTS.get(word.lower(), (word.strip("\"'"),))
    return iter(kept)


def _filled(text: str, names: dict[str, str]) -> str:
    for name, value in names.items():
        text = text.replace("${" + name + "}", value).replace("{" + name + "}", value)
    return text


def _end_of_loop(blocks: Sequence[_Block], at: int) -> int:
    depth = 1
    for number in range(at, len(blocks)):
        word = blocks[number].head[0]
        depth += word in ("loop", "foreach", "concurrentloop", "concurrentforeach")
        depth -= word == "endloop"
        if not depth:
            return number
    return len(blocks)


_HEADS = re.compile(
    r"(statement|query|halt|require|require-env|load|unzip|include|mode|loop|foreach|concurrentloop"
    r"|concurrentforeach|endloop|skipif|onlyif|restart|reconnect|hash-threshold|set|reset|sleep"
    r"|test-env|tags|continue|template)\b"
)


def _blocks(text: str) -> Iterator[_Block]:
    """Each header with the SQL below it, up to ``----`` or an empty line."""
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if not _HEADS.match(line):
            continue
        body = []
        if line.startswith(("statement", "query")):
            number = at
            while at < len(lines) and lines[at].strip() and not lines[at].startswith("----"):
                body.append(lines[at])
                at += 1
            # Skip expected rows, which must not be read as headers.
            while at < len(lines) and lines[at].strip():
                at += 1
            yield _Block(number, line.split(), tuple(body))
        else:
            yield _Block(at, line.split(), ())
