"""A history of one writer at a time: every statement is drawn, and the model judges it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import icesql
from tests.campaigns.histories import files
from tests.campaigns.histories.drawing import ALONE, TOGETHER, Statement
from tests.campaigns.histories.judge import History
from tests.campaigns.histories.model import Fault, Row, TableModel, difference, told
from tests.campaigns.histories.others import in_java
from tests.campaigns.histories.spelling import Spelling
from tests.writer.history import History as Files
from tests.writer.model import shown


class Alone(History):
    """Nobody comes in. A table begins as SQL makes it, or as files of another writer, in all formats.

    With Java statements are Spark's, of those that both take, and each is done by one of the two.
    """

    def __init__(self, seed: int, warehouse: Any, **others: Any) -> None:
        super().__init__(seed, warehouse, **others)
        self.tables.pop("u", None)
        self._weights, self._dropped = ALONE, False
        self.draw.reuses_names = True
        if self.java is not None:
            self._weights, self.draw.spelling = TOGETHER, Spelling(spark=True)

    def _begin(self) -> None:
        if self.java is not None:
            self.own.close()
            given = self.warehouse.arguments(through_gateway=True)
            self.own = icesql.connect(**given, dialect="spark", timezone="UTC")
        elif self.warehouse.kind == "sqlite" and self.chance.random() < 0.5:
            self._begin_with_files()
            return
        super()._begin()

    def _begin_with_files(self) -> None:
        """A table of every type, in three formats, with every kind of delete and changed columns."""
        self.other.execute(f"CREATE SCHEMA {self.namespace}")
        place = self.warehouse.warehouse / self.namespace / "t"
        made = Files(self.outcome.seed, place)
        self._tell(f"by files: {made.log}")
        # Deletes that went with their rows left are damage, and maintenance says so.
        self._dropped = any(name == "_drop_files" for name, _ in made.log)
        self.other.execute(
            f"CALL system.register_table('{self.namespace}.t', '{made.metadata_path}')"
        )
        table = self.tables["t"]
        self._look(table)
        self._named(table)
        table.ids = {}
        # PyIceberg and Java do not read all of these.
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
        return self.draw.draw(self._weights, self.tables["t"])

    def _perform(self, statement: Statement) -> BaseException | None:
        if self.java is None or self.chance.random() < 0.5:
            return super()._perform(statement)
        self._tell(f"JAVA {statement.text}")
        try:
            for text in statement.texts:
                self.java.run(in_java(text, self.draw.name("t")))
        except RuntimeError as error:
            if statement.kind == "publish":
                self.java.run("RESET spark.wap.id")
            return icesql.NotSupportedError(str(error))
        return None

    def _check_all(self) -> None:
        super()._check_all()
        table = self.tables["t"]
        with self.warehouse.connect() as con:
            con.execute("SET local_reader = 'arrow'")
            self._check(con, table)
        self._check_condition(table)
        if len(self.outcome.told) % 7 == 0:
            self._check_java(table)

    def _check_condition(self, table: TableModel) -> None:
        """The rows of a condition, by both readers, and without pruning."""
        text, test = self.draw.condition(table)
        if self.draw.spelling.spark:
            return
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
        if self.java is None:
            self._plant(table)
            self._remove_orphans(table, Statement("nothing"))
            if not self._dropped:
                self._look_after(table)
        super()._end()

    def _plant(self, table: TableModel) -> None:
        """What killed writers leave: whole files that nothing names, and unfinished ones."""
        assert table.document is not None
        there = sorted(each for each in files.there(table.document) if each.endswith("avro"))
        for number, like in enumerate(there[:3]):
            Path(like).with_name(f"left-{number}-{Path(like).name}").write_bytes(b"left")
        half = Path(files.local(table.document["location"])) / "data" / f".x.{'0' * 12}.part"
        half.parent.mkdir(exist_ok=True)
        half.write_bytes(b"half")

    def _check_totals(self, table: TableModel) -> None:
        """The totals of the summary are those of the files."""
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
