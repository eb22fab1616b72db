"""The board's tables and questions, from the archive beside this file.

    python -m tests.board.questions FOLDER

draws them anew from a folder of tables whose answers are known (`cases.jsonl`, `tables.jsonl`).
"""

from __future__ import annotations

import io
import json
import re
import sys
import tarfile
from collections.abc import Iterable, Iterator
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


# ------------------------------------------------------------------ drawn from the known answers

_PARAGRAPHS: Final = {  # the first feature that a table has names what it is about
    "encryption": "Encryption Keys",
    "geometry": "Primitive Types",
    "variant": "Semi-structured Types",
    "timestamp_ns": "Primitive Types",
    "unknown": "Primitive Types",
    "row-lineage": "Row Lineage",
    "defaults": "Default values",
    "dv": "Deletion Vectors",
    "posdelete+dv": "Deletion Vectors",
    "eqdelete": "Equality Delete Files",
    "global-deletes": "Scan Planning",
    "float-keys": "Equality Delete Files",
    "null-struct-key": "Equality Delete Files",
    "posdelete": "Position Delete Files",
    "merge-on-read": "Position Delete Files",
    "type-promotion": "Schema Evolution",
    "nested-evolution": "Schema Evolution",
    "name-mapping": "Column Projection",
    "legacy": "Column Projection",
    "rename": "Column Projection",
    "odd-names": "Column Projection",
    "case-only-names": "Column Projection",
    "partition-evolution": "Partition Evolution",
    "partition": "Partition Transforms",
    "branches": "Snapshot References",
}
_SELECT: Final = re.compile(
    r'SELECT (count\(\*\)|\*|\*, _row_id, \w+|[\w", ]+) FROM t(?: WHERE (.+))?'
)
_LITERAL: Final = r"(?:-?\d+|(?:DATE )?'[\w -]*')"
# Filters that all engines of the board can be asked in the same words.
_PLAIN: Final = re.compile(
    rf"[a-z]+ (?:(?:=|<>|<|>|<=|>=) {_LITERAL}|IS (?:NOT )?NULL|BETWEEN {_LITERAL} AND {_LITERAL})"
)
# The text of a variant that holds bytes or times is each engine's own.
_TYPED: Final = re.compile(r'\\"bin|T\d\d:\d\d')
_FILTERS, _OLD_SNAPSHOTS = 2, 1


def _questions_of(table: dict[str, Any], cases: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    about = next(
        (
            heading
            for feature, heading in _PARAGRAPHS.items()
            if any(each == feature or each.startswith(f"{feature}:") for each in table["features"])
        ),
        "Snapshots",
    )
    if table["format_version"] == 3 and about == "Position Delete Files":
        about = "Deletion Vectors"
    wanted = {"now": 1, "lineage": 1, "filter": _FILTERS, "travel": _OLD_SNAPSHOTS}
    seen = set()
    for case in cases:
        travel = case.get("time_travel") or {}
        found = _SELECT.fullmatch(re.sub(r'"([a-z]+)"', r"\1", case["sql"]))
        if found is None or travel.keys() - {"snapshot_id"} or '"' in found[0]:
            continue
        columns, where = found[1], found[2]
        if where and not _PLAIN.fullmatch(where):
            continue
        kind = (
            "filter"
            if where
            else "travel"
            if travel
            else "lineage"
            if "_row_id" in columns
            else "now"
        )
        shape = re.sub(_LITERAL, "?", where or "")
        if not wanted[kind] or (kind, shape) in seen or (kind == "filter" and travel):
            continue
        if kind in ("now", "travel") and columns != "*":
            continue
        if about == "Semi-structured Types" and _TYPED.search(json.dumps(case["expected"])):
            continue
        seen.add((kind, shape))
        wanted[kind] -= 1
        paragraph = {
            "filter": "Scan Planning",
            "travel": "Point in Time Reads (Time Travel)",
            "lineage": "Row Lineage",
        }.get(kind, about)
        yield {
            "id": case["id"],
            "table": table["table"],
            "paragraph": paragraph,
            "columns": columns,
            "where": where,
            "snapshot_id": travel.get("snapshot_id"),
            "expected": case["expected"],
        }
    if wanted["now"] and about != "Semi-structured Types":
        raise ValueError(f"{table['table']} has no case with all of its rows")


def draw(folder: Path) -> None:
    """Write the listing and the archive from a folder of tables with known answers."""
    lines = {
        name: [
            json.loads(line)
            for line in (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        ]
        for name in ("tables", "cases")
    }
    tables, questions = [], []
    for table in lines["tables"]:
        cases = [each for each in lines["cases"] if each["table"] == table["table"]]
        metadata = folder / cases[0]["metadata"]
        location = json.loads(metadata.read_text(encoding="utf-8"))["location"]
        questions += _questions_of(table, cases)
        tables.append(
            {
                "name": table["table"],
                "location": location.removeprefix("file:"),
                "metadata": metadata.name,
                "writer": table["writer"],
                "features": table["features"],
            }
        )
    listing = {"tables": tables, "questions": questions}
    rows = [
        f'"{name}": [\n' + ",\n".join(json.dumps(each) for each in entries) + "\n]"
        for name, entries in listing.items()
    ]
    LISTING.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")
    with tarfile.open(ARCHIVE, "w:xz", preset=9) as archive:
        for table in tables:
            for path in sorted((folder / table["name"]).rglob("*")):
                if path.is_file() and not path.name.endswith(".crc"):
                    content = path.read_bytes()
                    member = tarfile.TarInfo(path.relative_to(folder).as_posix())
                    member.size = len(content)
                    archive.addfile(member, io.BytesIO(content))


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
