"""A lake of tables that streams have left, drawn from a seed."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import icesql
from tests.campaigns.lakes.streams import DAY_MS, Stream

NAMESPACES = (("a",), ("a", "b"), ("c",))


def _upserts(stream: Stream, chance: random.Random) -> None:
    stream.append(chance.randint(20, 80))
    for _ in range(chance.randint(5, 14)):
        stream.wait(chance.uniform(1, 60))
        stream.upsert(chance.randint(1, 12), fresh=chance.randint(0, 12))


def _positions(stream: Stream, chance: random.Random) -> None:
    for _ in range(chance.randint(2, 4)):
        stream.append(chance.randint(30, 80))
    for _ in range(chance.randint(4, 10)):
        stream.wait(chance.uniform(1, 80))
        stream.delete_by_position(chance.randint(1, 15))


def _mixed(stream: Stream, chance: random.Random) -> None:
    stream.append(60)
    for _ in range(chance.randint(6, 14)):
        stream.wait(chance.uniform(1, 40))
        match chance.randrange(4):
            case 0:
                stream.append(chance.randint(1, 30))
            case 1:
                stream.upsert(chance.randint(1, 10), fresh=3)
            case 2:
                stream.delete_by_equality(chance.randint(1, 5))
            case _:
                stream.delete_by_position(chance.randint(1, 8))


def _small(stream: Stream, chance: random.Random) -> None:
    for _ in range(chance.randint(8, 30)):
        stream.wait(chance.uniform(0.1, 20))
        stream.append(chance.randint(1, 25))


def _evolved(stream: Stream, chance: random.Random) -> None:
    stream.append(40)
    if stream.version > 1:
        stream.upsert(5, fresh=2)
    stream.add_column()
    for _ in range(chance.randint(3, 6)):
        stream.wait(chance.uniform(1, 30))
        stream.append(10)
    stream.set_spec(chance.randint(2, 4))
    for _ in range(chance.randint(4, 8)):
        stream.wait(chance.uniform(1, 30))
        stream.append(12)
        if stream.version > 1:
            stream.upsert(3)
            stream.delete_by_position(2)


def _branched(stream: Stream, chance: random.Random) -> None:
    _small(stream, chance)
    stream.tag("first")
    stream.wait(48)
    if stream.version > 1:
        stream.upsert(4)
    stream.tag("audit", kind="branch")
    for _ in range(4):
        stream.wait(10)
        stream.append(9)


def _healthy(stream: Stream, chance: random.Random) -> None:
    stream.append(chance.randint(50, 200))


KINDS: dict[str, tuple[Callable[[Stream, random.Random], None], tuple[int, ...], int]] = {
    # What is done, in which versions, and in how many of ten tables.
    "upserts": (_upserts, (2, 3), 3),
    "positions": (_positions, (2, 3), 1),
    "mixed": (_mixed, (2, 3), 1),
    "small": (_small, (1, 2, 3), 2),
    "evolved": (_evolved, (1, 2, 3), 1),
    "branched": (_branched, (1, 2, 3), 1),
    "healthy": (_healthy, (1, 2, 3), 1),
}


class GeneratedTable:
    """A table of the lake; ``stream`` has what is known of it."""

    def __init__(self, identifier: tuple[str, ...], kind: str, stream: Stream) -> None:
        self.identifier, self.kind, self.stream = identifier, kind, stream

    @property
    def name(self) -> str:
        """As SQL writes it."""
        return ".".join(self.identifier)


class Lake:
    """A warehouse folder, or a SQLite catalog, with ``count`` tables.

    ``connection`` are the arguments of ``icesql.connect``. Commits have ``scale`` times the rows.
    """

    def __init__(
        self, folder: Path, seed: int, count: int, catalog: str = "directory", scale: int = 1
    ) -> None:
        chance = random.Random(seed)
        self.folder = folder
        warehouse = folder / "warehouse"
        warehouse.mkdir(parents=True)
        order = [kind for kind, (_, _, share) in KINDS.items() for _ in range(share)]
        self.tables: list[GeneratedTable] = []
        for number in range(count):
            kind = order[number * 7 % len(order)]
            self.tables.append(_table(warehouse, chance, number, kind, scale))
        self.connection: dict[str, Any] = {"warehouse": str(warehouse)}
        if catalog == "sqlite":
            self.connection = {"uri": f"sqlite:///{folder}/c.db", "warehouse": str(warehouse)}
            _register(self)
        _order(self, chance)

    @property
    def words(self) -> list[str]:
        """The options of the command that open it."""
        return [each for key, value in self.connection.items() for each in (f"--{key}", value)]

    def connect(self, **settings: Any) -> icesql.Connection:
        """A connection that may write."""
        return icesql.connect(**self.connection, read_only=False, settings=settings)


def _table(
    warehouse: Path, chance: random.Random, number: int, kind: str, scale: int
) -> GeneratedTable:
    make, versions, _ = KINDS[kind]
    identifier = (*chance.choice(NAMESPACES), f"{kind}_{number:03}")
    partitions = chance.choice((0, 0, 3)) if kind != "evolved" else 0
    stream = Stream(
        warehouse.joinpath(*identifier), chance, chance.choice(versions), partitions,
        days=chance.choice((2, 20, 40)),
    )  # fmt: skip
    stream.scale = scale
    make(stream, chance)
    if chance.random() < 0.3:
        stream.leave_orphans(chance.randint(1, 6), chance.randint(0, 2))
    return GeneratedTable(identifier, kind, stream)


def _register(lake: Lake) -> None:
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("c", uri=lake.connection["uri"], warehouse=lake.connection["warehouse"])
    for each in NAMESPACES:
        catalog.create_namespace(each)
    for table in lake.tables:
        catalog.register_table(table.identifier, table.stream.writer.metadata_path)
    catalog.close()


def _order(lake: Lake, chance: random.Random) -> None:
    """Some of them are sorted from now on."""
    with lake.connect() as connection:
        for table in lake.tables:
            if chance.random() < 0.15:
                connection.execute(f"ALTER TABLE {table.name} WRITE ORDERED BY id")


def is_old(stream: Stream, snapshot_id: int, days: float) -> bool:
    """Whether a snapshot of the generator was older than so many days when the lake was made."""
    for each in stream.writer.snapshots:
        if each["snapshot-id"] == snapshot_id:
            return bool(each["timestamp-ms"] < time.time() * 1000 - days * DAY_MS)
    return False
