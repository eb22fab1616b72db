"""The board's tables and questions, from the archive beside this file."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

HERE: Final = Path(__file__).parent
LISTING: Final = HERE / "questions.json"
ARCHIVE: Final = HERE / "tables.tar.xz"


class Table(Struct, frozen=True):
    """A table of the archive: where its own metadata says that it lies, and the file to open."""

    name: str
    location: str
    metadata: str
    writer: str
    features: list[str]


class Question(Struct, frozen=True):
    """`SELECT columns FROM table [WHERE where]` at a snapshot, with the rows that are right.

    `paragraph` is the heading of Iceberg's specification that decides.
    """

    id: str
    table: str
    paragraph: str
    columns: str
    where: str | None
    snapshot_id: int | None
    expected: list[list[str | None]]

    def asked(self, metadata: Path) -> dict[str, Any]:
        """The question as adapters read it."""
        names = ("columns", "where", "snapshot_id")
        return {"metadata": str(metadata), **{each: getattr(self, each) for each in names}}


def load() -> tuple[dict[str, Table], list[Question]]:
    """The tables by name, and the questions in the order of their tables."""
    listing = json.loads(LISTING.read_text(encoding="utf-8"))
    tables = {each["name"]: Table(**each) for each in listing["tables"]}
    return tables, [Question(**each) for each in listing["questions"]]


def lay(tables: Iterable[Table], root: Path | None = None) -> dict[str, Path]:
    """The metadata file of each table, unpacked below `root`, or where its paths say that it lies.

    Raises: FileExistsError where something lies there already.
    """
    tables = list(tables)
    places = {each.name: root / each.name if root else Path(each.location) for each in tables}
    for place in places.values():
        place.mkdir(parents=True)
    with tarfile.open(ARCHIVE) as archive:
        for member in archive:
            group, name, inner = member.name.split("/", 2)
            if (place := places.get(f"{group}/{name}")) and member.isfile():
                target = place / inner
                target.parent.mkdir(parents=True, exist_ok=True)
                content = archive.extractfile(member)
                assert content is not None
                target.write_bytes(content.read())
    return {each.name: places[each.name] / "metadata" / each.metadata for each in tables}
