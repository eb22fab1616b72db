"""A history of two writers: another commits inside of each statement of icesql."""

from __future__ import annotations

import random
from typing import Any

import icesql
from tests.campaigns.histories import others
from tests.campaigns.histories.drawing import IDS, OTHER, OWN, PARTITIONS, Statement
from tests.campaigns.histories.judge import RESHAPED, History, run_texts
from tests.campaigns.histories.model import (
    Fault,
    Part,
    Row,
    Rows,
    TableModel,
    difference,
    inserted,
)
from tests.campaigns.histories.model import deleted as rows_deleted
from tests.catalog.writes.gateways import HANGS_UP, Relay


class TwoWriters(History):
    """Others come in at moments inside of statements, and a gateway loses, repeats and delays."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        # The statement that sent a delayed request, and the rows that it may have read.
        self._late: tuple[Statement, dict[tuple[str, str], list[Rows]]] | None = None

    def _fill(self) -> None:
        """Changes of other writers to new tables, before the first statement."""
        for table in self.tables.values():
            for _ in range(self.chance.randint(2, 4)):
                self._other(self.draw.draw({"insert": 1}, table))
        for _ in range(self.chance.randint(0, 3)):
            self._other(self._drawn_other())

    def _begun(self, statement: Statement) -> None:
        late = None if self._late is None else self._late[0]
        self._arrive(1.0)
        super()._begun(statement)
        # The statement was drawn earlier: a column may have been renamed since.
        self._raced |= set() if late is None else {late.kind} & RESHAPED

    def _moments_drawn(self) -> list[tuple[str, int]]:
        return self.moments.draw(self.chance, self.chance.choice([0, 1, 1, 1, 2, 3]))

    def _perform(self, statement: Statement) -> BaseException | None:
        wanted = self._moments_drawn()
        self._plan_faults()
        self._tell(f"   {wanted}")
        with self.moments.inside(wanted):
            error = super()._perform(statement)
        self.moments.swaps.clear()
        self.outcome.moments += self.moments.counts
        return error

    def _after(self, statement: Statement) -> None:
        if not self._is_quiet():
            self._late = statement, self._candidates
        for _ in range(self.moments.left if self.chance.random() < 0.5 else 0):
            self._come_in("afterwards")
        self._arrive(0.6)

    def _end(self) -> None:
        self._arrive(1.0)
        super()._end()

    # ------------------------------------------------------------------ drawing

    def _drawn_own(self) -> Statement:
        weights = dict(OWN)
        if "u" in self.tables:
            weights["transaction"] = 12
        if self.shape.version == 2:
            weights["rewrite_deletes"] = 4
        return self.draw.draw(weights, self.tables["t"])

    def _drawn_other(self) -> Statement:
        """A statement of another writer."""
        chance, own = self.chance, self._statement
        table = self.tables[chance.choice([*self.tables])] if own is None else self.tables["t"]
        if own is not None and own.kind == "transaction of two" and chance.random() < 0.5:
            table = self.tables["u"]
        weights = dict(OTHER)
        if table.version > 1:
            weights["position_delete"] = 4
            if not table.respecced and (self.shape.by_p or not self.shape.spec):
                weights["equality_delete"] = 12
        if own is not None and own.kind == "overwrite dynamic":
            weights |= {"change_partitions": 0, "overwrite": 12}
        # PyIceberg ignores equality deletes, and would rewrite the rows that they delete.
        if self.pyiceberg is not None and table.version < 3:
            weights["by_pyiceberg"] = 4
        return self.draw.draw(weights, table, self)

    # ------------------------------------------------------------------ other writers

    def equality_delete(self, table: TableModel) -> Statement | None:
        """As by Flink: deletes by key of older rows, with new rows or without."""
        chance, ids = self.chance, table.ids
        partition: tuple[Any, ...] = ()
        p = None
        if self.shape.by_p:
            p = chance.choice(PARTITIONS)
            partition = (p,)
        known = [row.cells.get(ids["id"]) for row in table.at("main")]
        some = sorted({each for each in known if each is not None} or {0})
        wanted = sorted(chance.sample(some, min(len(some), chance.randint(1, 2))))
        rows = None
        if chance.random() < 0.7:
            rows = self._first(table, self.draw.cells(table, ids=wanted))
            for each in rows:
                if self.shape.by_p:
                    each[ids["p"]] = p

        def gone(row: Any) -> bool:
            here = p is None or row.cells.get(ids["p"]) == p
            return here and row.cells.get(ids["id"]) in wanted

        def effect(now: Rows, seen: Rows) -> Rows:
            left = rows_deleted(gone)(now, seen)
            return (*left, *(Row(dict(each)) for each in rows or ()))

        def run() -> None:
            catalog, loaded = self.warehouse.load(self.namespace, table.name)
            others.equality_delete(
                catalog, loaded, wanted, field=ids["id"], partition=partition, rows=rows
            )

        table.keyed = True
        words = f"equality delete of {wanted} in {partition}, {rows or 'no rows'}"
        return Statement(words, (), (Part(table.name, effect),), run=run, table=table.name)

    def position_delete(self, table: TableModel) -> Statement | None:
        if not table.at("main"):
            return None
        text, test = self.draw.condition(table)

        def run() -> None:
            with self.moments.apart():
                found = self.reader.execute(
                    f"SELECT _file, _pos FROM {self.draw.name(table.name)} WHERE {text}"
                ).fetchall()
            if found:
                catalog, loaded = self.warehouse.load(self.namespace, table.name)
                others.position_delete(catalog, loaded, [(each[0], each[1]) for each in found])

        part = Part(table.name, rows_deleted(test))
        return Statement(f"position delete WHERE {text}", (), (part,), run=run, table=table.name)

    def by_pyiceberg(self, table: TableModel) -> Statement | None:
        assert self.pyiceberg is not None
        names, writer, chance = table.names(), self.pyiceberg, self.chance
        if "x" not in names:
            return None
        called = {number: names[own] for own, number in table.ids.items() if own in names}

        def by_name(cells: list[dict[int, Any]]) -> list[dict[str, Any]]:
            return [{called[k]: v for k, v in each.items() if k in called} for each in cells]

        place = self.namespace, table.name
        # PyIceberg writes NULL for missing columns, not their defaults.
        cells = [
            {**{each["id"]: None for each in table.schema()}, **row}
            for row in self._first(table, self.draw.cells(table))
        ]
        if table.keyed or chance.random() < 0.4:
            part = Part(table.name, inserted(cells))
            return Statement(
                "pyiceberg append", (), (part,),
                run=lambda: writer.append(*place, by_name(cells)), table=table.name,
            )  # fmt: skip
        number = chance.choice(IDS)
        text, id_ = f"{names['id']} = {number}", table.ids["id"]
        if chance.random() < 0.5:
            part = Part(table.name, rows_deleted(lambda row: row.cells.get(id_) == number))
            return Statement(
                f"pyiceberg delete {text}", (), (part,),
                run=lambda: writer.delete(*place, text), table=table.name,
            )  # fmt: skip
        # An overwrite by PyIceberg is two commits.
        gone = Part(table.name, rows_deleted(lambda row: row.cells.get(id_) == number))
        new = Part(table.name, inserted(cells))
        return Statement(
            f"pyiceberg overwrite {text}", (), (gone, new),
            run=lambda: writer.overwrite(*place, by_name(cells), text), table=table.name,
        )  # fmt: skip

    @staticmethod
    def _first(table: TableModel, cells: list[dict[int, Any]]) -> list[dict[int, Any]]:
        """Rows reduced to id, p and x."""
        first = [table.ids[each] for each in ("id", "p", "x")]
        return [{each: row.get(each) for each in first} for row in cells]

    def _act(self, moment: str) -> None:
        """Let another writer commit."""
        try:
            self._come_in(moment)
        except Fault as error:
            self._fault = self._fault or error

    def _come_in(self, moment: str) -> None:
        self._settle("own")  # the moment may be after the commit, and before its answer
        gateway = self.warehouse.gateway
        if gateway is not None and gateway.late and self.chance.random() < 0.5:
            self._arrive(1.0)
        own = self._statement
        if own is not None and own.makes is not None and self.chance.random() < 0.4:
            self._take_name(own.makes, moment)
            return
        often = self.shape.properties.get("write.metadata.previous-versions-max") == "1"
        count = self.chance.choice([1, 1, 1, 2, 4 if often else 1])
        for _ in range(count):
            one = self.draw.draw({"insert": 1}, self.tables["t"]) if count == 4 else None
            drawn = one or self._drawn_other()
            self._other(drawn, moment)

    def _take_name(self, name: str, moment: str) -> None:
        """Another writer takes the name of the table that a statement is about to create."""
        model = self.tables[name]
        if model.document is not None:
            return
        text = f"CREATE TABLE {self.draw.name(name)} (a INT)"
        self._tell(f"   OTHER at {moment}: {text}")
        self._raced.add("create")
        try:
            self.other.execute(text)
        except icesql.Error as error:
            # In a folder without a catalog the files of a table that is being made are in the way.
            self._tell(f"   -> {error}")
            return
        self._look(model)
        model.ids = {}

    def _other(self, statement: Statement, moment: str = "") -> None:
        """Run a statement of another writer, without interruptions."""
        self._tell(f"   OTHER{' at ' * bool(moment)}{moment}: {statement.text}")
        self.outcome.others[" ".join(statement.kind.split()[:2])] += 1
        table = self.tables[statement.table]
        before = {key: list(rows) for key, rows in table.rows.items()}
        with self.moments.apart():
            error: Exception | None = None
            try:
                if statement.run is not None:
                    statement.run()
                run_texts(self.other, statement.texts)
            except Exception as caught:
                error = caught
            changed = self._settle("other", statement)
        if changed:
            self._raced.add(statement.kind)
        if error is not None:
            self._tell(f"      refused: {type(error).__name__} {str(error)[:150]}")
            by_others = statement.run is not None
            if not by_others and not self._may_refuse(statement, error, raced=False):
                raise Fault(f"alone: {statement.text}: {type(error).__name__}: {error}")
        elif not changed and statement.parts and statement.kind not in ("rewrite_data_files",):
            part = statement.parts[0]
            if len(statement.parts) == 1 and not statement.kind.startswith("position"):
                seen = tuple(before.get(part.branch, ()))
                self._unchanged(table, part.effect(seen, seen), seen, statement)

    def _unchanged(self, table: TableModel, wanted: Rows, rows: Rows, statement: Statement) -> None:
        if lost := difference(table.shown(rows), table.shown(wanted)):
            raise Fault(f"committed nothing: {statement.text}: {lost}")

    # ------------------------------------------------------------------ planned faults

    def _plan_faults(self) -> None:
        """Choose faults of the gateway for the next changes, or of the process."""
        gateway, chance = self.warehouse.gateway, self.chance
        if gateway is None:
            if chance.random() < 0.08:
                self.moments.swaps[:] = [chance.choice(["interrupted", "not told", "not sent"])]
                self._raced.add("fault")
                self._tell(f"   FAULT {self.moments.swaps[0]}")
            return
        if chance.random() < 0.45:
            plan = [_relay(chance) for _ in range(chance.choice([1, 1, 1, 2]))]
            if chance.random() < 0.2:
                plan.insert(0, Relay())
            gateway.relays = [*plan]
            done: list[int] = []

            def between() -> None:
                with self.moments.apart():
                    self._swapped()
                    if not done and chance.random() < 0.3:
                        done.append(1)
                        self._act("between")

            gateway.between = between
            self._raced.add("fault")
            for each in plan:
                self.outcome.gateway[each.applies] += 1
            self._tell(f"   FAULT {plan}")

    def _is_quiet(self) -> bool:
        return self.warehouse.gateway is None or not self.warehouse.gateway.late

    def _arrive(self, likely: float) -> None:
        """A delayed request arrives at the catalog."""
        gateway = self.warehouse.gateway
        if gateway is None:
            return
        gateway.relays, gateway.looks = [], []
        if gateway.late and self.chance.random() < likely:
            self._tell("   LATE")
            with self.moments.apart():
                gateway.deliver()
                now = self._statement, self._candidates
                if self._late is not None:
                    self._statement, self._candidates = self._late
                self._settle("own")
                self._statement, self._candidates = now
                self._late = None


def _relay(chance: random.Random) -> Relay:
    """A request that is lost, repeated, late or never applied; then some catalog reads fail."""
    applies = chance.choice(["once", "once", "never", "twice", "twice", "late", "late"])
    known: list[int] = [500, 502, 503, 503, 504, HANGS_UP] + [429] * (applies == "never")
    answer = None if applies == "twice" else chance.choice(known)
    return Relay(applies, answer, chance.choice([0, 0, 0, 1, 4, 9]))
