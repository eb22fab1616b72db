"""Steps of scenes with connections whose owner forbids something."""

from __future__ import annotations

from ast import literal_eval
from pathlib import Path
from typing import Any

import icesql
from tests.scenes import Session
from tests.security.conftest import one_column


class Owner(Session):
    """``${folder}`` is an empty folder, ``${wh}`` a warehouse in it with the table ``ns.t``."""

    con: Any

    def __init__(self, folder: Path) -> None:
        super().__init__(None)
        self.folder = folder / "f"
        self.folder.mkdir()
        self.values = {"folder": self.folder, "wh": folder / "wh"}
        one_column(folder / "wh" / "ns" / "t", 1)

    def connect(self, *words: str) -> None:
        """Connect with these arguments, which are texts or Python literals."""
        self.close()
        given = (each.split("=", 1) for each in words)
        self.con = icesql.connect(**{name: _value(text) for name, text in given})

    def close(self) -> None:
        if self.con is not None:
            self.con.close()

    def keep(self) -> None:
        self.before = self.con.settings

    def kept(self) -> None:
        """The settings are the same as before."""
        assert self.con.settings == self.before

    def setting(self, name: str, value: str) -> None:
        assert str(getattr(self.con.settings, name)) == value

    def access(self, name: str, value: str) -> None:
        """A limit of the connection; sets are sorted."""
        found = getattr(self.con.access, name)
        assert str(sorted(found) if isinstance(found, frozenset) else found) == value

    def mkdir(self, name: str) -> None:
        (self.folder / name).mkdir()

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(f"{text}\n")

    def files(self, *names: str) -> None:
        """The names in the folder."""
        assert sorted(each.name for each in self.folder.iterdir()) == [*names]

    def text(self, name: str, lines: str) -> None:
        """The lines of a file, separated by ``|``."""
        assert (self.folder / name).read_text() == "".join(f"{each}\n" for each in lines.split("|"))

    def at_line(self, line: str) -> None:
        """The last error is at this line."""
        assert str(getattr(self.error, "line", None)) == line


def _value(text: str) -> Any:
    try:
        return literal_eval(text)
    except (ValueError, SyntaxError):
        return text
