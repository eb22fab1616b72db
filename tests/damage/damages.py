"""Damage done to one file of a table: cuts, zeroed ranges, flipped bits, two files swapped."""

from __future__ import annotations

import json
import os
import random
import shutil
from dataclasses import dataclass, field
from pathlib import Path

KINDS = ("cut", "zero", "flip", "swap")


@dataclass
class CopiedTable:
    """A copy of a corpus table that may be damaged and put right again.

    ``files`` are its files by role: metadata, list, manifest, delete, puffin, data. ``odd`` are
    those whose length the manifest records wrongly from the start.
    """

    folder: str
    metadata: str
    files: dict[str, list[str]] = field(default_factory=dict)
    odd: set[str] = field(default_factory=set)

    @property
    def all_files(self):
        return [(role, path) for role, paths in self.files.items() for path in paths]


def copy_table(metadata, folder):
    """Copy the table whose metadata file this is, with everything that it reads.

    Data can lie beside the table, so as many parent folders are copied as it takes.
    """
    files, _ = files_of(metadata)
    paths = [path for found in files.values() for path in found]
    root = os.path.commonpath([os.path.dirname(os.path.dirname(metadata)), *paths])
    shutil.copytree(root, folder)
    moved = os.path.join(folder, os.path.relpath(metadata, root))
    copied, odd = files_of(moved)
    inside = all(path.startswith(str(folder)) for paths in copied.values() for path in paths)
    assert inside, f"the copy of {metadata} reads files of the original"
    return CopiedTable(str(folder), moved, copied, odd)


def files_of(metadata):
    """The local files that reading a table touches, by role, and those of a wrong length."""
    from icesql.catalog.open import open_table
    from icesql.context import QueryContext
    from icesql.iceberg.manifest.manifest import snapshot_manifests
    from icesql.scan.plan import TableScan
    from icesql.scan.planner import plan

    table = open_table(str(metadata))
    snapshot = table.metadata.current_snapshot
    storage = table.storage
    scan = TableScan(table, snapshot, table.metadata.schema, table.metadata.schema)
    found, odd = {"metadata": {str(metadata)}}, set()

    def add(role, path):
        found.setdefault(role, set()).add(storage.local_path(path))

    if snapshot is not None:
        if snapshot.manifest_list is not None:
            add("list", snapshot.manifest_list)
        for manifest in snapshot_manifests(snapshot, storage.read, storage.location):
            add("manifest", manifest.manifest_path)
    for task in plan(scan, QueryContext()).files:
        add("data", task.data_file.path)
        for file in (task.data_file, *task.deletes):
            path = storage.local_path(file.path)
            if os.path.getsize(path) != file.file_size_in_bytes:
                odd.add(path)
        for delete in task.deletes:
            add("puffin" if delete.file_format.upper() == "PUFFIN" else "delete", delete.path)
    return {role: sorted(paths) for role, paths in found.items()}, odd


@dataclass
class Damage:
    """One damage, ready to be done and undone."""

    kind: str
    role: str
    path: str
    other: str | None
    detail: str
    before: bytes
    after: bytes

    def apply(self):
        if self.other is not None:
            Path(self.other).write_bytes(self.before)
        Path(self.path).write_bytes(self.after)

    def undo(self):
        if self.other is not None:
            Path(self.other).write_bytes(self.after)
        Path(self.path).write_bytes(self.before)

    def __str__(self):
        return f"{self.kind} of {self.role} {self.path}: {self.detail}"


def random_damage(seed, table):
    """The damage of this seed: a role, a file of it and what happens to it."""
    chance = random.Random(seed)
    role = chance.choice(sorted(table.files))
    path = chance.choice(table.files[role])
    kind = chance.choices(KINDS, (3, 3, 5, 2))[0]
    before = Path(path).read_bytes()
    if kind == "swap":
        other = _other_file(chance, table, role, path)
        if other is not None:
            after = Path(other).read_bytes()
            return Damage(kind, role, path, other, os.path.basename(other), before, after)
        kind = "flip"
    if not before:
        return Damage("cut", role, path, None, "of an empty file", before, before)
    at = chance.randrange(len(before))
    if kind == "cut":
        at = chance.choice((0, at, at, len(before) - 1))
        return Damage(kind, role, path, None, f"at {at}", before, before[:at])
    if kind == "zero":
        end = min(len(before), at + chance.choice((1, 8, 64, 4096)))
        after = before[:at] + bytes(end - at) + before[end:]
        return Damage(kind, role, path, None, f"{at} to {end}", before, after)
    changed = bytearray(before)
    bit = chance.randrange(8)
    changed[at] ^= 1 << bit
    return Damage(kind, role, path, None, f"bit {bit} of {at}", before, bytes(changed))


def _other_file(chance, table, role, path):
    # Another version's metadata is a whole table of its own: no reader can tell.
    others = [
        each for other_role, each in table.all_files if each != path and other_role != "metadata"
    ]
    alike = [each for each in table.files[role] if each != path and role != "metadata"]
    pool = alike if alike and chance.random() < 0.7 else others
    return chance.choice(pool) if pool else None


def says_something_else(damage):
    """Whether the damaged file is, for a decoder of its own, a whole file with other content.

    No reader can know such a file for a wrong one where no checksum covers it.
    """
    import fastavro

    if damage.kind != "flip":
        return False
    if damage.role == "metadata":
        try:
            return isinstance(json.loads(damage.after), dict)
        except ValueError:
            return False
    if damage.path.endswith(".avro"):
        import io

        try:
            return bool(list(fastavro.reader(io.BytesIO(damage.after)))) or True
        except Exception:  # whatever fastavro raises, the file is not whole
            return False
    return False
