"""Steps of scenes with a writer of the table ns.t, and with others that write to it meanwhile."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

import icesql
from icesql.catalog.writes import directory as writes
from icesql.catalog.writes.change import TableChange
from icesql.commit.create import create_table, stage_table
from icesql.commit.file_changes import change_table
from icesql.commit.rows import commit_append
from icesql.iceberg.metadata.changes import updates as u
from tests.catalog.writes.swaps import TABLE, swapped, value_of
from tests.commit.tables import SCHEMA, create, fake, live, written
from tests.scenes import Stage

# Two versions are kept, the current one and the one before it.
SHORT: Final = {
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "1",
}
# The writer's next action: find the newest version, link its own version, write the hint, or check
# for other writers' versions.
MOMENTS: Final[dict[str, tuple[Any, str]]] = {
    "link": (writes, "_link_new"),
    "hint": (writes, "put_hint"),
    "look": (writes._Linked, "outcome"),
    "replace": (os, "replace"),
    "listing": (writes, "hinted_last"),
}


class Writers(Stage):
    """A catalog and the table that the writer loaded; ``${metadata}`` is its metadata folder."""

    table: Any
    error: Any

    def __init__(
        self, make: Callable[[Path], Any], folder: Path, patch: pytest.MonkeyPatch
    ) -> None:
        super().__init__()
        self.make, self.folder, self.patch = make, folder, patch
        self.catalog, self.staged = self.make(folder), dict[str, Any]()
        self.values["warehouse"] = folder / "wh"
        patch.setattr("icesql.commit.attempts._STATUS_WAIT_SECONDS", 0.0)

    @property
    def others(self) -> Any:
        """The catalog, opened separately by others, without this one's state."""
        return self.make(self.folder) if self.catalog.kind == "directory" else self.catalog

    @property
    def metadata(self) -> Path:
        return Path(self.values["metadata"])

    # ------------------------------------------------------------------ the writer

    def create(self, *words: str) -> None:
        """A new table, ``partitioned`` by p, with these properties; ``short`` keeps two versions."""
        properties = dict(each.split("=") for each in words if "=" in each)
        properties = (SHORT if "short" in words else {}) | properties
        version = int(properties.pop("version", 2))
        by_p = "partitioned" in words
        self.table = create(self.catalog, version=version, partitioned=by_p, **properties)
        self.values["metadata"] = Path(self.table.metadata_location).parent

    def stage(self, name: str, short: str = "") -> None:
        """Stage a table, which is not visible yet."""
        properties = SHORT if short else {}
        self.staged[name] = stage_table(self.catalog, TABLE, SCHEMA, properties=properties)
        assert self.staged[name].table.metadata.schema.fields == SCHEMA.fields

    def stage_in(self, namespace: str) -> None:
        stage_table(self.catalog, (namespace, "u"), SCHEMA)

    def create_staged(self, name: str) -> None:
        self.table = create_table(self.catalog, self.staged[name]).table

    def load(self) -> None:
        self.table = self.catalog.load(TABLE)

    def load_long_ago(self) -> None:
        """Others may have put files into the folder since."""
        self.load()
        self.catalog._listed[os.path.dirname(self.metadata)] -= 60

    def commit(self, name: str) -> None:
        commit_append(self.catalog, self.table, [fake(name)])

    def commit_now(self, name: str) -> None:
        """As ``commit``, to the table as it is now."""
        commit_append(self.catalog, self.catalog.load(TABLE), [fake(name)])

    def commit_file(self, name: str, *partition: str) -> None:
        """Commit a file that is there."""
        file = written(self.table, name, [(1, "x")], partition)
        self.values["file"] = file.path
        commit_append(self.catalog, self.table, [file])

    def swap(self, value: str) -> None:
        """One try to set the property ``k``."""
        self.outcome = swapped(self.catalog, self.table, value)

    def change(self, name: str, value: str) -> None:
        """One try to set another property, or the location."""
        update = u.SetLocation(value) if name == "location" else u.SetProperties({name: value})
        change = TableChange((update,), (), self.table.storage, 1)
        self.outcome = self.catalog.swap(TABLE, self.table.metadata_location, change)

    def set(self, name: str, value: str) -> None:
        """Set a property, like a statement does."""
        change_table(self.catalog, self.table, lambda _: [u.SetProperties({name: value})])

    def give_hint(self, version: str) -> None:
        writes.write_hint(str(self.metadata), int(version))

    def rename(self, name: str) -> None:
        self.catalog.rename(TABLE, ("ns", name))

    def create_namespace(self, name: str) -> None:
        self.catalog.create_namespace((name,))

    def drop_namespace(self, name: str) -> None:
        self.catalog.drop_namespace((name,))

    def drop(self) -> None:
        self.others.drop(TABLE, purge=True)

    def own(self, text: str) -> None:
        """SQL of a connection that stays open."""
        if not hasattr(self, "con"):
            self.con = icesql.connect(warehouse=self.folder / "wh")
        self.con.execute(text)

    # ------------------------------------------------------------------ others

    def append(self, *names: str) -> None:
        """Others commit each of these files."""
        for name in names:
            commit_append(self.others, self.others.load(TABLE), [fake(name)])

    def anew(self) -> None:
        """Others make a table of this name."""
        create(self.others, **SHORT)

    def forget(self) -> None:
        """Others remove the snapshots between the first and the last one."""
        now = self.others.load(TABLE)
        between = [*now.metadata.snapshots][1:-1]
        change_table(self.others, now, lambda _: [u.RemoveSnapshots(tuple(between))])

    def take_over(self, later_by_ms: str) -> None:
        """Another catalog commits a version to the same folder."""
        text = Path(self.table.metadata_location).read_text()
        known = f'"last-updated-ms":{self.table.metadata.last_updated_ms}'
        assert known in text
        later = self.table.metadata.last_updated_ms + int(later_by_ms)
        place = self.metadata / "00007-0a0a0a0a-0000-4000-8000-000000000001.metadata.json"
        place.write_text(text.replace(known, f'"last-updated-ms":{later}'))

    def other(self, text: str) -> None:
        """SQL of a connection of its own."""
        with icesql.connect(warehouse=self.folder / "wh") as connection:
            connection.execute(text)

    def before(self, moment: str, steps: str) -> None:
        """What others do before the writer's next moment of this kind; cut at semicolons."""
        self._once("before", moment, steps)

    def after(self, moment: str, steps: str) -> None:
        self._once("after", moment, steps)

    def instead_of(self, moment: str, steps: str) -> None:
        self._once("instead of", moment, steps)

    def die(self) -> None:
        raise KeyboardInterrupt

    def _once(self, when: str, moment: str, steps: str) -> None:
        owner, name = MOMENTS[moment]
        real = getattr(owner, name)

        def others_act() -> None:
            for each in steps.split("; "):
                self.step(each)

        def late(*given: Any) -> Any:
            self.patch.setattr(owner, name, real)
            if when != "after":
                others_act()
            # The version of the writer's base replaces the result of its listing.
            instead = str(self.table.metadata_location) if moment == "listing" else True
            made = instead if when == "instead of" else real(*given)
            if when == "after":
                others_act()
            return made

        self.patch.setattr(owner, name, late)

    def links(self, how: str) -> None:
        """How the file system links: not at all, with an error, without an answer, or twice."""
        real = os.link

        def link(source: str, target: str) -> None:
            if how == "refused":
                raise PermissionError(1, "Operation not permitted")
            if how != "failed":
                real(source, target)
            if how in ("failed", "lost"):
                raise OSError(5, "Input/output error")
            if target.endswith(".metadata.json"):
                real(source, target)

        self.patch.setattr(os, "link", link)

    # ------------------------------------------------------------------ files of metadata

    def copy(self, name: str, other: str) -> None:
        shutil.copy(self.metadata / name, self.metadata / other)

    def remove(self, *names: str) -> None:
        for name in names:
            (self.metadata / name).unlink()

    def text(self, name: str, text: str) -> None:
        (self.metadata / name).write_text(text)

    def there(self, *names: str) -> None:
        assert all((self.metadata / name).exists() for name in names)

    def gone(self, *names: str) -> None:
        assert not any((self.metadata / name).exists() for name in names)

    def files(self, count: str, pattern: str) -> None:
        assert len([*self.metadata.glob(pattern)]) == int(count)

    def files_anywhere(self, count: str, pattern: str) -> None:
        assert len([*self.folder.rglob(pattern)]) == int(count)

    def same(self, name: str, other: str) -> None:
        """Two files hold the same."""
        assert (self.metadata / name).read_bytes() == (self.metadata / other).read_bytes()

    def is_gzip(self) -> None:
        """The file that the last try made."""
        assert Path(self.outcome.location).read_bytes().startswith(b"\x1f\x8b")

    def hint(self, text: str) -> None:
        assert (self.metadata / "version-hint.text").read_text() == text

    # ------------------------------------------------------------------ what came of it

    def came(self, kind: str, text: str = "") -> None:
        """The outcome of a try, and what it says."""
        assert type(self.outcome).__name__ == kind
        assert text in str(self.outcome)

    def omits(self, text: str) -> None:
        assert text not in str(self.outcome)

    def value(self, wanted: str) -> None:
        assert value_of(self.catalog) == wanted

    def live(self, *names: str) -> None:
        """The files of the table now."""
        table = self.catalog.load(TABLE)
        assert (live(table) if table.metadata.snapshots else set()) == {*names}

    def snapshots(self, count: str) -> None:
        assert len(self.catalog.load(TABLE).metadata.snapshots) == int(count)

    def version(self, number: str) -> None:
        """The format of the table."""
        assert self.catalog.load(TABLE).metadata.format_version == int(number)

    def location(self, end: str) -> None:
        assert self.table.metadata.location.endswith(end)

    def partitions(self, *names: str) -> None:
        assert [each.name for each in self.catalog.load(TABLE).metadata.spec.fields] == [*names]

    def at(self, name: str) -> None:
        """The file of the current metadata."""
        assert self.catalog.load(TABLE).metadata_location == str(self.metadata / name)

    def is_another(self, answer: str) -> None:
        """Whether the table of the name is another one now, ``yes`` or ``no``."""
        uuids = {self.catalog.load(TABLE).metadata.table_uuid, self.table.metadata.table_uuid}
        assert len(uuids) == 1 + (answer == "yes")

    def drop_renamed(self, name: str) -> None:
        self.catalog.drop(("ns", name))

    def namespaces(self, count: str) -> None:
        assert len(self.catalog.namespaces()) == int(count)

    def tables(self, count: str) -> None:
        assert len(self.catalog.tables()) == int(count)

    def rows(self, *ids: str) -> None:
        """The rows, as a connection of its own reads them."""
        with icesql.connect(warehouse=self.folder / "wh") as connection:
            found = connection.execute("SELECT id FROM ns.t ORDER BY id").fetchall()
        assert [str(each) for (each,) in found] == [*ids]

    def error_names(self, *paths: str) -> None:
        """Files of the error, all of which are there."""
        assert {*paths} <= {*self.error.files}
        assert all(os.path.exists(path) for path in self.error.files)
