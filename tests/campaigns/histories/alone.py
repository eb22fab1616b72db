"""A history of one writer: every statement is drawn, and the model and, as a twin, Java judge it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import icesql
from tests.campaigns.histories import files
from tests.campaigns.histories.drawing import ALONE, TOGETHER, Drawing, Statement
from tests.campaigns.histories.judge import History
from tests.campaigns.histories.model import Fault, Row, TableModel, difference, told
from tests.campaigns.histories.others import in_java
from tests.campaigns.histories.spelling import Spelling
from tests.writer.history import History as Files
from tests.writer.model import shown

LINEAGE = ", _row_id, _last_updated_sequence_number"
METADATA = {
    "files": "SELECT content, file_path, spec_id, record_count, file_size_in_bytes FROM {}.files",
    "snapshots": "SELECT snapshot_id, parent_id, operation, manifest_list FROM {}.snapshots",
    "refs": "SELECT name, type, snapshot_id FROM {}.refs",
}


class Alone(History):
    """Nobody comes in. A table begins as SQL makes it, or as files of another writer, in all formats.

    With Java a second table, the twin, is changed by Spark SQL in the same way: rows, and in version
    3 which statement made each and changed it last, have to be the same; a history ends where one
    alone refuses a statement.
    """

    def __init__(self, seed: int, warehouse: Any, **others: Any) -> None:
        super().__init__(seed, warehouse, **others)
        twin = self.java is not None
        self.draw = Drawing(
            self.chance, self.shape, self.namespace, self.tables, Spelling(spark=twin),
        )  # fmt: skip
        self.tables.pop("u", None)
        self._weights = TOGETHER if twin else ALONE
        self._twin, self._over, self._dropped = f"{self.namespace}.twin", False, False
        # The snapshot of the twin that is as one of the table, and statements by what they made.
        self._twins: dict[int, int] = {}
        self._births: tuple[dict[int, int], dict[int, int]] = {}, {}
        self._dates: tuple[dict[int, int], dict[int, int]] = {}, {}
        self.draw.common = set() if twin else None
        self.draw.reuses_names = True

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

    def _fill(self) -> None:
        """Nothing: the twin begins with this statement."""
        if self.java is not None:
            self.java.run(in_java(self.outcome.told[-1], self.draw.name("t"), self._twin))

    def _drawn_own(self) -> Statement:
        return self.draw.draw(self._weights, self.tables["t"])

    # ------------------------------------------------------------------ the twin

    def _begun(self, statement: Statement) -> None:
        super()._begun(statement)
        self._errors: dict[str, Any] = {}

    def _perform(self, statement: Statement) -> BaseException | None:
        error = super()._perform(statement)
        if self.java is not None:
            try:
                for text in statement.texts:
                    self.java.run(in_java(text, self.draw.name("t"), self._twin, self._twins))
            except RuntimeError as other:
                self._errors["java"] = other
                if statement.kind == "publish":
                    self.java.run("RESET spark.wap.id")
        return error

    def _judge(self, statement: Statement, error: BaseException | None) -> None:
        other = self._errors.get("java")
        if other is None or self.java is None:
            super()._judge(statement, error)
        if self.java is not None and (error is None) != (other is None):
            who = "icesql" if error is not None else "Java"
            self.outcome.foreign.append(f"{who} alone refuses: {error or other}: {statement.text}")
            self._over = True

    def _check_all(self) -> None:
        super()._check_all()
        table = self.tables["t"]
        with self.warehouse.connect() as con:
            con.execute("SET local_reader = 'arrow'")
            self._check(con, table)
        self._check_condition(table)
        if self.java is not None and not self._over:
            self._check_twin(table)

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

    def _check_twin(self, table: TableModel) -> None:
        assert table.document is not None
        with self.warehouse.connect() as con:
            cursor = con.execute(f"SELECT * FROM {self._twin}")
            names = [each[0] for each in cursor.description or ()]
            found = told(cursor.fetchall())
            refs = con.execute(f"SELECT snapshot_id FROM {self._twin}.refs WHERE name = 'main'")
            head = refs.fetchone()
            lived = [self._lived(con, n) for n in range(2)] if table.version > 2 else []
        if names != [each["name"] for each in table.schema()]:
            raise Fault(f"columns {[each['name'] for each in table.schema()]}, Java {names}")
        if lost := difference(table.shown(table.at("main")), found):
            raise Fault(f"Java's rows are others: {lost}")
        # After an upgrade the first commit gives ids, and only Java commits what changes no row.
        has_ids = lived and all(any(row[-2] is not None for row in each) for each in lived)
        if has_ids and (lost := difference(*lived)):
            raise Fault(f"lineage: {lost}")
        if self._statement is not None and self._statement.kind == "expire":
            self._twins.clear()  # how many are kept differs for the same reason
        elif head is not None and "main" in table.heads:
            self._twins[table.heads["main"]] = head[0]
        self.draw.common = {*self._twins}
        if len(self.outcome.told) % 7 == 0:
            self._java_reads(table)

    def _lived(self, con: icesql.Connection, side: int) -> list[Any]:
        """Rows with the number of the statement that made each, and of the one that changed it."""
        name, number = (self.draw.name("t"), self._twin)[side], len(self.outcome.told)
        rows = told(con.execute(f"SELECT *{LINEAGE} FROM {name}").fetchall())
        known, dates = self._births[side], self._dates[side]
        return [
            (*row[:-2], row[-2] and known.setdefault(row[-2], number),
             row[-1] and dates.setdefault(row[-1], number))
            for row in rows
        ]  # fmt: skip

    def _java_reads(self, table: TableModel) -> None:
        assert self.java is not None
        name = f"c.{self.draw.name('t')}"
        for what, text in METADATA.items():
            with self.warehouse.connect() as con:
                own = told(con.execute(text.format(self.draw.name("t"))).fetchall())
            if lost := difference(own, told(self.java.run(text.format(name)))):
                raise Fault(f"{what} as Java reads them: {lost}")
        self._check_java(table)

    # ------------------------------------------------------------------ the end

    def _step(self) -> None:
        if not self._over:
            super()._step()

    def _end(self) -> None:
        table = self.tables["t"]
        self._check_totals(table)
        if self.java is None:
            self._plant(table)
            self._remove_orphans(table, Statement("nothing"))
            if not self._dropped:
                self._look_after(table)
        elif not self._over:
            self._java_reads(table)
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
