"""Damage that old writers did, made by hand: it is found, and the advice mends it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from msgspec.structs import replace

import icesql
from icesql.catalog.table import Table
from icesql.commit.branches import moved_ref, new_snapshot_id
from icesql.commit.file_changes import change_table
from icesql.commit.manifests.store import ManifestStore, OwnFiles
from icesql.commit.rows import commit_row_delta
from icesql.context import QueryContext
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.manifest.manifest import ManifestContent
from icesql.iceberg.manifest.writer import ListHeader, added_entry, existing_entry
from icesql.iceberg.metadata.changes.updates import AddSnapshot, SetSnapshotRef
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.scan.manifest_reader import ManifestReader
from tests.health.stage import Doctored
from tests.read.read_tables import (
    data_file,
    equality_deletes,
    facts,
    position_deletes,
    write_parquet,
)
from tests.scenes import Scene, scenes
from tests.sessions import answer

KINDS = {"data": FileContent.DATA, "deletes": FileContent.POSITION_DELETES}
KINDS["keys"] = FileContent.EQUALITY_DELETES


class Ward(Doctored):
    """A connection and the table ns.t, whose snapshots may also be written by hand.

    ``${good}`` is the last snapshot before the damage, ``${bad}`` the one that did it.
    """

    looked_for = (
        "rows changed", "deletes dropped", "file twice", "row ids twice", "missing files",
        "broken snapshots",
    )  # fmt: skip

    def __init__(self, folder: str) -> None:
        super().__init__(icesql.connect(warehouse=folder))
        self.folder = folder
        self.files: dict[str, list[DataFile]] = {}
        self.there: set[Path] = set()
        self.sql("CREATE SCHEMA ns")

    def create(self, *properties: str) -> None:
        """A table with these properties; what is deleted stays in its files."""
        pairs = dict(each.split("=") for each in properties)
        pairs = {f"write.{word}.mode": "merge-on-read" for word in ("delete", "update")} | pairs
        listed = ", ".join(f"'{name}' = '{value}'" for name, value in pairs.items())
        self.sql(f"CREATE TABLE ns.t (id BIGINT, x INT) TBLPROPERTIES ({listed})")

    def insert(self, first: int, count: int) -> None:
        self.sql(f"INSERT INTO ns.t SELECT range, 0 FROM range({first}, {first} + {count})")

    def good(self) -> None:
        self.values["good"] = self.table.metadata.current_snapshot_id

    def bad(self) -> None:
        self.values["bad"] = self.table.metadata.current_snapshot_id

    def reopen(self) -> None:
        """Nothing is kept of what was read."""
        self.con.close()
        self.con = icesql.connect(warehouse=self.folder)

    @property
    def table(self) -> Table:
        found: Table = self.con.catalog.load(("ns", "t"))
        return found

    # ------------------------------------------------------------------ files

    def file(self, name: str, *ids: str) -> None:
        """A new data file of these ids, with bounds."""
        numbers = [*map(int, ids)]
        path = write_parquet(self.data, "1 id long, 2 x int", [numbers, [0] * len(numbers)])
        self.files[name] = [data_file(path, **facts(numbers))]

    def positions(self, name: str, *rows: str) -> None:
        """New position deletes of ``<file>/<row>``, with the bounds of the paths."""
        cut = (each.split("/") for each in rows)
        pairs = sorted((self.files[file][0].path, int(row)) for file, row in cut)
        least, greatest = ({2147483546: pairs[place][0].encode()} for place in (0, -1))
        made = position_deletes(self.data, pairs, lower_bounds=least, upper_bounds=greatest)
        self.files[name] = [made]

    def name(self, name: str, kind: str, place: str = "") -> None:
        """The live files of a kind, or the one at a place, those of fewest rows first."""
        found = sorted(self.live(kind), key=lambda each: each.record_count)
        found = [found[int(place)]] if place else found
        self.files[name] = found
        self.values[name] = found[0].referenced_data_file or found[0].path

    def live(self, kind: str) -> list[DataFile]:
        table = self.table
        reader = ManifestReader(table, QueryContext())
        snapshot = table.metadata.current_snapshot
        assert snapshot is not None
        return [
            entries.data_file(index)
            for entries, index in reader.live(reader.manifests_of(snapshot))
            if entries.content[index] == KINDS[kind]
        ]

    @property
    def data(self) -> Path:
        return Path(self.table.metadata.location, "data")

    def delete_keys(self, *ids: str) -> None:
        """An equality delete on id."""
        numbers = [*map(int, ids)]
        file = equality_deletes(
            self.data, "1 id long!", [numbers], sequence_number=None, **facts(numbers)
        )
        start = self.table.metadata.current_snapshot_id
        commit_row_delta(
            self.con.catalog, self.table, deletes=[file], command="delete", start_id=start
        )

    def write(self, operation: str, *words: str) -> None:
        """A snapshot of files that stay and, behind ``+``, new ones, by a writer that checks nothing.

        ``as=<file>`` gives these the number of another file, ``row_ids=<file>`` the row ids of it;
        ``branch=<name>`` is where the snapshot goes.
        """
        options = dict(each.split("=") for each in words if "=" in each)
        files = [each for each in words if "=" not in each]
        cut = files.index("+") if "+" in files else len(files)
        kept, new = (
            [file for name in part for file in self.files[name]]
            for part in (files[:cut], files[cut + 1 :])
        )
        self.values["bad"] = self.commit(operation, kept, new, **options)

    def commit(
        self, operation: str, existing: Sequence[DataFile], added: Sequence[DataFile],
        branch: str = "main", row_ids: str = "", **others: str,
    ) -> int:  # fmt: skip
        table, number = self.table, new_snapshot_id(self.table.metadata.snapshots)
        metadata = table.metadata
        store = ManifestStore(table, number, OwnFiles(table.storage), QueryContext())
        data_number = self.files[others["as"]][0].sequence_number if others else None
        made = []
        for content in (ManifestContent.DATA, ManifestContent.DELETES):
            for entries in (
                [existing_entry(each, number) for each in existing],
                [added_entry(each, number, data_number) for each in added],
            ):
                own = [e for e in entries if (e.file.content is FileContent.DATA) == (content == 0)]
                if own:
                    made.append(store.write(own, store.form(0, content)).manifest)
        if row_ids:
            made[-1] = replace(made[-1], first_row_id=self.files[row_ids][0].first_row_id)
        sequence = metadata.last_sequence_number + 1
        is_v3 = metadata.format_version > 2
        first = metadata.next_row_id if is_v3 else None
        known = metadata.refs.get(branch)
        parent = None if known is None else known.snapshot_id
        header = ListHeader(metadata.format_version, number, parent, sequence, first)
        path, _, rows = store.write_list(made, 1, header)
        snapshot = Snapshot(
            number, parent, sequence, metadata.last_updated_ms + 1, path, operation=operation,
            summary={}, schema_id=metadata.current_schema_id, first_row_id=first,
            added_rows=rows if is_v3 else None,
        )  # fmt: skip
        updates = AddSnapshot(snapshot), SetSnapshotRef(branch, moved_ref(metadata, branch, number))
        change_table(self.con.catalog, table, lambda _: updates)
        return number

    def mark(self) -> None:
        """Remember the files that are there, for ``lose``."""
        self.there = {*Path(self.folder).rglob("*")}

    def lose(self, pattern: str) -> None:
        """Files that came since then are gone."""
        for each in {*Path(self.folder).rglob(pattern)} - self.there:
            each.unlink()

    # ------------------------------------------------------------------ what is seen

    def ids(self, *wanted: str) -> None:
        """The rows, as a connection of its own reads them."""
        found = answer("SELECT id FROM ns.t ORDER BY id", warehouse=self.folder)
        assert [str(each) for (each,) in found] == [*wanted]

    def finds(self, wanted: str) -> None:
        """As ``names``; each finding says what did it and where to go back to."""
        self.names(wanted)
        for each in self.found:
            assert f"the last good snapshot is {self.values['good']}," in each.cost
        assert len(self.found) > 1 or f"snapshot {self.values['bad']} " in self.found[0].told

    def cherrypicks(self, count: str) -> None:
        assert self.found[0].statement.count("cherrypick_snapshot") == int(count)

    def mend(self) -> None:
        """Follow the advice; nothing is found then."""
        self.follow()
        self.names()


@scenes(__file__, "damage.scenes")
def test_damage_is_found_and_mended(scene: Scene, tmp_path: Path) -> None:
    with closing(Ward(str(tmp_path))) as ward:
        ward.play(scene)
