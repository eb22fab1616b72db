"""Draw random texts from a file of alternatives: for conditions, queries and statements."""

from __future__ import annotations

import random
import re
from collections import Counter
from functools import cache
from pathlib import Path


class Grammar:
    """Draws texts from alternatives in a file, see ``conditions.txt``; ``drawn`` counts symbols.

    A word that is no symbol of the file calls a method with ``_`` before its name.
    """

    def __init__(self, chance: random.Random, file: Path) -> None:
        self.chance, self.drawn = chance, Counter[str]()
        self._alternatives = alternatives(file)

    def text(self, symbol: str) -> str:
        """A random text for a symbol."""
        self.drawn[symbol] += 1
        lines, weights = self._alternatives[symbol]
        (line,) = self.chance.choices(lines, weights)
        bound: dict[str, str] = {}

        def expanded(found: re.Match[str]) -> str:
            name, _, rest = found[1].rpartition(":")
            word, *more = rest.split(" ")
            if word in bound:
                return bound[word]
            if word in self._alternatives:
                made = self.text(word)
            else:
                made = getattr(self, f"_{word}")(*(bound.get(each, each) for each in more))
            if name:
                bound[name] = made
            return made

        return re.sub("`([^`]*)`", expanded, line).strip()

    def _one(self, *words: str) -> str:
        return self.chance.choice(words)

    def _words(self, *words: str) -> str:
        """These words, or none."""
        return " ".join(words)

    def _int(self, low: str, high: str) -> str:
        return str(self.chance.randint(int(low), int(high)))


@cache
def alternatives(file: Path) -> dict[str, tuple[list[str], list[int]]]:
    """The alternatives of each symbol, and their weights."""
    found: dict[str, tuple[list[str], list[int]]] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        if name := re.fullmatch(r"\[(\w+)\]", line):
            lines, weights = found.setdefault(name[1], ([], []))
        elif line and not line.startswith("#"):
            weight, text = re.fullmatch(r"(?:(\d+)  )?(.*)", line).groups()  # type: ignore[union-attr]
            lines.append(text)
            weights.append(int(weight or 1))
    return found
