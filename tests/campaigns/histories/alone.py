"""A history of one writer at a time: every statement is drawn, and the model judges it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.campaigns.histories import files
from tests.campaigns.histories.drawing import ALONE, Statement
from tests.campaigns.histories.judge import History
from tests.campaigns.histories.model import Fault, Row, TableModel, difference, told
from tests.writer.history import History as Files
from tests.writer.model import shown


class Alone(History):
    """No other writer. SQL creates the table, or files of another writer in all formats."""

    def __init__(self, seed: int, warehouse: Any, **others: Any) -> None:
        super().__init__(seed, warehouse, **others)
        self.tables.pop("u", None)
        self._dropped = False
        self.draw.reuses_names = True

    def _begin(self) -> None:
        if self.warehouse.kind == "sqlite" and self.chance.random() < 0.5:
            self._begin_with_files()
            return
        super()._begin()

    def _begin_with_files(self) -> None:
        """A table of every type, in three formats, with every kind of delete and changed columns."""
        self.other.execute(f"CREATE SCHEMA {self.namespace}")
        place = self.warehouse.warehouse / self.namespace / "t"
        made = Files(self.outcome.seed, place)
        self._tell(f"by files: {made.log}")
        # Dropping deletes but not their rows is damage, which maintenance reports.
        self._dropped = any(name == "_drop_files" for name, _ in made.log)
        self.other.execute(
            f"CALL system.register_table('{self.namespace}.t', '{made.metadata_path}')"
        )
        table = self.tables["t"]
        self._look(table)
        self._named(table)
        table.ids = {}
        # PyIceberg does not read all of these.
        table.keyed = table.respecced = True
        for number in made.writer.live_at:
            own = made.fields_of(number)
            table.snapshots[number] = tuple(map(Row, made.rows(number, table.schema())))
            self._past[number] = [
                tuple(shown(each["type"], row[each["id"]]) for each in own)
                for row in made.rows(number, own)
            ]
        heads = {n: r["snapshot-id"] for n, r in made.writer.refs.items() if r["type"] == "branch"}
        heads["main"] = made.writer.current
        table.heads, table.rows = heads, {n: table.snapshots[each] for n, each in heads.items()}

    def _drawn_own(self) -> Statement:
        return self.draw.draw(ALONE, self.tables["t"])

    def _check_all(self) -> None:
        super()._check_all()
        table = self.tables["t"]
        with self.warehouse.connect() as con:
            con.execute("SET local_reader = 'arrow'")
            self._check(con, table)
        self._check_condition(table)

    def _check_condition(self, table: TableModel) -> None:
        """The rows of a condition, by both readers, and without pruning."""
        text, test = self.draw.condition(table)
        wanted = table.shown(each for each in table.at("main") if test(each) is True)
        for setting in ("local_reader = 'auto'", "local_reader = 'arrow'", "prune = off"):
            self.reader.execute(f"SET {setting}")
            sql = f"SELECT * FROM {self.draw.name('t')} WHERE {text}"
            if lost := difference(told(self.reader.execute(sql).fetchall()), wanted):
                raise Fault(f"{sql} with {setting}: {lost}")
        self.reader.execute("SET prune = on")
        self.reader.execute("SET local_reader = 'auto'")

    def _end(self) -> None:
        table = self.tables["t"]
        self._check_totals(table)
        self._plant(table)
        self._remove_orphans(table, Statement("nothing"))
        if not self._dropped:
            self._look_after(table)
        super()._end()

    def _plant(self, table: TableModel) -> None:
        """Leftovers of killed writers: complete but unreferenced files, and unfinished ones."""
        assert table.document is not None
        there = sorted(each for each in files.there(table.document) if each.endswith("avro"))
        for number, like in enumerate(there[:3]):
            Path(like).with_name(f"left-{number}-{Path(like).name}").write_bytes(b"left")
        half = Path(files.local(table.document["location"])) / "data" / f".x.{'0' * 12}.part"
        half.parent.mkdir(exist_ok=True)
        half.write_bytes(b"half")

    def _check_totals(self, table: TableModel) -> None:
        """Check that the totals of the summary match the files."""
        assert table.document is not None
        head = table.document.get("current-snapshot-id")
        for snapshot in table.document["snapshots"]:
            summary, found = snapshot.get("summary", {}), files.counts(table.document)
            if snapshot["snapshot-id"] == head:
                kept = {
                    key: int(summary[f"total-{key.replace('_', '-')}"])
                    for key in ("data_files", "delete_files", "records", "position_deletes")
                    if f"total-{key.replace('_', '-')}" in summary
                }
                if kept != {key: found[key] for key in kept}:
                    raise Fault(f"the summary tells {kept}, the files are {dict(found)}")
