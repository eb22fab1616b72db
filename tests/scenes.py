"""Scenes: what happens and what is seen then, a line for each step, in ``.scenes`` files.

    # comment
    scene <name>
    with <name>=<value> …        the scene runs once for each such line, whose cells are separated by
                                 tabs where values have spaces; ``${name}`` is the value
    <word> <arguments>           the method of the stage that has this name takes them, separated by
                                 blanks; its last parameter takes the rest of the line
    SELECT …                     a line that begins in capitals is SQL, for the method ``sql``; ``⏎`` is
                                 the end of a line in it
    fails <class>: <regex>       the next step ends in an error of this class that matches

A stage is an object that a test makes for each scene: its public methods are the words.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from icesql import errors


@dataclass(frozen=True)
class Scene:
    """The steps of a scene, each with its place in the file, and the values that it runs with."""

    name: str
    values: dict[str, str]
    steps: list[tuple[str, str]]


def scenes(test_file: str, name: str) -> pytest.MarkDecorator:
    """Run a test with each ``scene`` of the file ``name`` beside it."""
    found = [pytest.param(each, id=each.name) for each in read_scenes(test_file, name)]
    return pytest.mark.parametrize("scene", found)


def read_scenes(test_file: str, name: str) -> Iterator[Scene]:
    text = Path(test_file).with_name(name).read_text(encoding="utf-8")
    for block in re.split(r"^(?=scene )", text, flags=re.MULTILINE)[1:]:
        title, *lines = block.splitlines()
        first = text.count("\n", 0, text.index(block)) + 2
        values, steps = [], []
        for number, line in enumerate(lines, first):
            if line.startswith(("with ", "with\t")):
                cells = line.split("\t" if "\t" in line else None)[1:]
                values.append(dict(each.split("=", 1) for each in cells))
            elif line and not line.startswith("#"):
                steps.append((f"{name}:{number}", line))
        for each in values or [{}]:
            yield Scene("-".join([title.removeprefix("scene "), *each.values()]), each, steps)


class Stage:
    """What the words of scenes act on; ``values`` are those of ``${name}``, ``error`` came last."""

    error: BaseException

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    def play(self, scene: Scene) -> None:
        """Raises what a step raises, with the place of the step as a note."""
        self.values |= {name: self.filled(text) for name, text in scene.values.items()}
        expected = None
        for place, text in scene.steps:
            try:
                if text.startswith("fails "):
                    expected = re.fullmatch(r"fails (\w+): (.+)", self.filled(text))
                elif expected:
                    with pytest.raises(getattr(errors, expected[1]), match=expected[2]) as caught:
                        self.step(text)
                    self.error, expected = caught.value, None
                else:
                    self.step(text)
            except BaseException as error:
                error.add_note(f"{place}: {text}")
                raise

    def filled(self, text: str) -> str:
        return re.sub(r"\$\{(\w+)\}", lambda found: str(self.values[found[1]]), text)

    def step(self, text: str) -> None:
        """Do what a line says."""
        text = self.filled(text)
        word, _, rest = text.partition(" ")
        if word.isupper():
            word, rest = "sql", text.replace("⏎", "\n")
        method = getattr(self, word)
        parameters = inspect.signature(method).parameters.values()
        takes_all = any(each.kind is each.VAR_POSITIONAL for each in parameters)
        method(*rest.split(maxsplit=-1 if takes_all else len(parameters) - 1))


class Session(Stage):
    """A stage with a connection."""

    def __init__(self, connection: Any) -> None:
        super().__init__()
        self.con, self.answer, self.noted = connection, list[Any](), list[str]()

    def close(self) -> None:
        self.con.close()

    def sql(self, text: str) -> None:
        """Run statements; the rows of the last one are the answer."""
        for cursor in self.con.execute_script(text):
            self.described = [each[0] for each in cursor.description or ()]
            self.answer = cursor.fetchall() if self.described else []
            self.noted = [*cursor.notes]

    def columns(self, *names: str) -> None:
        """The names of the columns of the answer."""
        assert self.described == [*names]

    def cells(self, *texts: str) -> None:
        """The cells of the answer, row by row."""
        assert [str(each) for row in self.answer for each in row] == [*texts]

    def firsts(self, *texts: str) -> None:
        """The first cell of each row of the answer."""
        assert [str(row[0]) for row in self.answer] == [*texts]

    def shows(self, text: str) -> None:
        """What is part of the answer, whose cells are separated by ``|``."""
        assert text in "\n".join(" | ".join(map(str, row)) for row in self.answer)

    def notes(self, text: str) -> None:
        assert text in "\n".join(self.noted)

    def let(self, name: str, text: str) -> None:
        """The value of a name is the one that a query gives."""
        self.sql(text)
        ((self.values[name],),) = self.answer
