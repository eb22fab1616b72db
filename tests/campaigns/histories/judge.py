"""One history: statements of icesql, another writer inside of each, and what has to be left."""

from __future__ import annotations

import random
import traceback
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import icesql
from tests.campaigns.histories import files, others, upkeep
from tests.campaigns.histories.catalogs import Warehouse
from tests.campaigns.histories.drawing import (
    IDS,
    OTHER,
    OWN,
    PARTITIONS,
    Drawing,
    Shape,
    Statement,
)
from tests.campaigns.histories.model import (
    Fault,
    Part,
    Row,
    Rows,
    TableModel,
    difference,
    inserted,
    outcomes,
    told,
)
from tests.campaigns.histories.model import deleted as rows_deleted
from tests.campaigns.histories.moments import Moments
from tests.campaigns.histories.server import drawn_fault
from tests.campaigns.histories.spelling import Spelling

LENGTH = 6
# Another's change of these is a reason not to find a column, a branch, a partition field.
_RESHAPED = {"columns", "replace table", "partitioning", "upgrade", "branch"}
_OLD = "any commit to the table makes it old"
_CLEANED = {"expire", "orphans"}


def run_texts(con: icesql.Connection, texts: tuple[str, ...]) -> None:
    """Run statements, and fetch what they give; ``maintain NAME`` is a run of maintenance."""
    for text in texts:
        if text.startswith("maintain "):
            con.maintain(text.removeprefix("maintain "))
            continue
        cursor = con.execute(text)
        if cursor.description:
            cursor.fetchall()


@dataclass
class Outcome:
    """What a history has shown."""

    seed: int
    kind: str
    version: int
    faults: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)
    others: Counter[str] = field(default_factory=Counter)
    moments: Counter[str] = field(default_factory=Counter)
    gateway: Counter[str] = field(default_factory=Counter)


class History:
    """The tables of one history, two writers of them, and a model."""

    def __init__(
        self,
        seed: int,
        warehouse: Warehouse,
        *,
        pyiceberg: others.PyIceberg | None = None,
        java: others.Java | None = None,
    ) -> None:
        self.chance = random.Random(f"two writers {seed}")
        self.shape = Shape(self.chance)
        self.warehouse, self.namespace = warehouse, f"h{seed}"
        self.pyiceberg, self.java = pyiceberg, java
        self.tables = {"t": TableModel("t")}
        if warehouse.kind == "rest" and self.chance.random() < 0.5:
            self.tables["u"] = TableModel("u")
        self.draw = Drawing(self.chance, self.shape, self.namespace, self.tables)
        self.outcome = Outcome(seed, warehouse.kind, self.shape.version)
        self.moments = Moments(self._act, self._swapped)
        self._statement: Statement | None = None
        self._candidates: dict[tuple[str, str], list[Rows]] = {}
        self._applied, self._changed = 0, set[str]()
        self._past: dict[int, list[tuple[Any, ...]]] = {}
        self._raced: set[str] = set()
        # The statement that has sent what is late, and what it may have read.
        self._late: tuple[Statement, dict[tuple[str, str], list[Rows]]] | None = None
        # Of what was seen inside of a statement, which must not take it for its own.
        self._fault: Fault | None = None

    # ------------------------------------------------------------------ run

    def run(self, length: int = LENGTH) -> Outcome:
        """The whole history; faults are in the outcome."""
        warehouse = self.warehouse
        warehouse.forget(self.namespace)
        self.own = warehouse.connect(through_gateway=True)
        self.own.progress = self._progressed
        self.other = warehouse.connect()
        self.reader = warehouse.connect()
        try:
            with self.moments.installed():
                self._begin()
                for _ in range(length):
                    self._step()
                self._end()
        except Fault as error:
            self.outcome.faults.append(str(error))
        except Exception:
            self.outcome.faults.append(f"the campaign itself failed: {traceback.format_exc()}")
        finally:
            for each in (self.own, self.other, self.reader):
                with suppress(Exception):
                    each.close()
            if warehouse.gateway is not None:
                warehouse.gateway.plan.clear()
                warehouse.gateway.late.clear()
                warehouse.gateway.down = 0
        self.outcome.moments += self.moments.counts
        return self.outcome

    def _progressed(self, progress: Any) -> None:
        """A statement that is planned again reads what is there now, and nothing of before."""
        if progress.stage != "planning again" or self._statement is None:
            return
        self._tell("   planned again")
        self.outcome.kinds[f"{self._statement.kind} planned again"] += 1
        self._candidates = {
            (name, branch): [rows]
            for name, table in self.tables.items()
            for branch, rows in {**dict.fromkeys(["main"], ()), **table.rows}.items()
        }

    def _tell(self, text: str) -> None:
        self.outcome.told.append(text)

    def _begin(self) -> None:
        self.other.execute(f"CREATE SCHEMA {self.namespace}")
        for name, table in self.tables.items():
            text = self.shape.create(f"{self.namespace}.{name}", self.draw.spelling)
            self._tell(text)
            self.own.execute(text)
            self._look(table)
            self._named(table)
        self._fill()

    def _fill(self) -> None:
        """What others do to new tables, before the first statement."""
        for table in self.tables.values():
            for _ in range(self.chance.randint(2, 4)):
                self._other(self.draw.draw({"insert": 1}, table))
        for _ in range(self.chance.randint(0, 3)):
            self._other(self._drawn_other())

    def _named(self, table: TableModel) -> None:
        table.ids = {each["name"]: each["id"] for each in table.schema()}

    def _step(self) -> None:
        """One statement of icesql, with others inside of it."""
        statement = self._drawn_own()
        self.outcome.kinds[statement.kind] += 1
        self._begun(statement)
        wanted = self._moments_drawn()
        self._plan_faults(statement)
        if statement.kind == "orphans" and not self._has_late():
            self.warehouse.make_old(self.namespace)
        self._tell(f"OWN {statement.text}   at {wanted}")
        error = self._perform(statement, wanted)
        if self._fault is not None:
            self._tell(f"   -> {type(error).__name__} {str(error)[:200]}")
            raise self._fault
        if "BEGIN" in statement.texts and error is not None:
            with suppress(icesql.Error):
                self.own.execute("ROLLBACK")
        self._settle("own")
        self._judge(statement, error)
        if self._has_late():
            self._late = statement, self._candidates
        for _ in range(self.moments.left if self.chance.random() < 0.5 else 0):
            self._come_in("afterwards")
        self._arrive(0.6)
        self._check_all()
        if statement.makes is not None:
            self._drop(statement.makes)
        self._statement = None

    def _moments_drawn(self) -> list[tuple[str, int]]:
        return self.moments.draw(self.chance, self.chance.choice([0, 1, 1, 1, 2, 3]))

    def _perform(self, statement: Statement, wanted: list[tuple[str, int]]) -> BaseException | None:
        """Run it; the error with which it ended."""
        error: BaseException | None = None
        with self.moments.inside(wanted):
            try:
                run_texts(self.own, statement.texts)
            except (Exception, KeyboardInterrupt) as caught:
                error = caught
        self.moments.swaps.clear()
        self.outcome.moments += self.moments.counts
        return error

    def _end(self) -> None:
        self._arrive(1.0)
        with self.warehouse.connect() as con:
            for table in self.tables.values():
                self._check(con, table)
                self._check_past(con, table)
                self._check_pyiceberg(table)
                self._check_java(table)

    # ------------------------------------------------------------------ drawing

    def _drawn_own(self) -> Statement:
        weights = dict(OWN)
        if "u" in self.tables:
            weights["transaction"] = 12
        if self.shape.version == 2:
            weights["rewrite_deletes"] = 4
        return self.draw.draw(weights, self.tables["t"])

    def _drawn_other(self) -> Statement:
        """What another writer does."""
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
        # It does not see equality deletes, and would write the rows that they delete anew.
        if self.pyiceberg is not None and table.version < 3:
            weights["by_pyiceberg"] = 4
        if self.java is not None:
            weights["by_java"] = 10
        return self.draw.draw(weights, table, self)

    # ------------------------------------------------------------------ other writers

    def equality_delete(self, table: TableModel) -> Statement | None:
        """As Flink's: deletes by key of what is older, with new rows or without."""
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
        if chance.random() < 0.35:
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
        # What it leaves out it writes as NULL, and not as a default.
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
        # Its overwrite is two commits.
        gone = Part(table.name, rows_deleted(lambda row: row.cells.get(id_) == number))
        new = Part(table.name, inserted(cells))
        return Statement(
            f"pyiceberg overwrite {text}", (), (gone, new),
            run=lambda: writer.overwrite(*place, by_name(cells), text), table=table.name,
        )  # fmt: skip

    def by_java(self, table: TableModel) -> Statement | None:
        assert self.java is not None
        draw, java, name = self.draw, self.java, self.draw.name(table.name)
        draw.spelling, own = Spelling(spark=True), draw.spelling
        try:
            drawn = draw.draw({"insert": 1, "delete": 1, "update": 1, "compaction": 1}, table)
        finally:
            draw.spelling = own

        def run() -> None:
            for text in drawn.texts:
                java.run(others.in_java(text, name, name))

        return Statement(
            f"java {drawn.kind} {drawn.text}", (), drawn.parts, run=run, table=table.name
        )

    @staticmethod
    def _first(table: TableModel, cells: list[dict[int, Any]]) -> list[dict[int, Any]]:
        """Rows of id, p and x alone."""
        first = [table.ids[each] for each in ("id", "p", "x")]
        return [{each: row.get(each) for each in first} for row in cells]

    def _swapped(self) -> None:
        try:
            self._settle("own")
        except Fault as error:
            self._fault = self._fault or error

    def _act(self, moment: str) -> None:
        """Another writer comes in."""
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
        """The name that a statement is about to make is another's."""
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
        """Run what another writer does, which nobody disturbs."""
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

    # ------------------------------------------------------------------ faults that are made

    def _plan_faults(self, statement: Statement) -> None:
        """What the gateway does to the next changes, or the process to itself."""
        gateway, chance = self.warehouse.gateway, self.chance
        if gateway is None:
            if chance.random() < 0.08:
                self.moments.swaps[:] = [chance.choice(["interrupted", "not told", "not sent"])]
                self._raced.add("fault")
                self._tell(f"   FAULT {self.moments.swaps[0]}")
            return
        if chance.random() < 0.45:
            plan = [drawn_fault(chance) for _ in range(chance.choice([1, 1, 1, 2]))]
            if chance.random() < 0.2:
                plan.insert(0, ("pass", 0, 0))
            gateway.plan[:] = plan
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
                self.outcome.gateway[each[0]] += 1
            self._tell(f"   FAULT {plan}")

    def _has_late(self) -> bool:
        return self.warehouse.gateway is not None and bool(self.warehouse.gateway.late)

    def _arrive(self, likely: float) -> None:
        """What was late arrives at the catalog."""
        gateway = self.warehouse.gateway
        if gateway is None:
            return
        gateway.plan.clear()
        gateway.down = 0
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

    # ------------------------------------------------------------------ what is committed

    def _begun(self, statement: Statement) -> None:
        late = None if self._late is None else self._late[0]
        self._arrive(1.0)
        self._statement, self._applied, self._changed = statement, 0, set[str]()
        # It was drawn before that: a column may have another name by now.
        self._raced = set() if late is None else {late.kind} & _RESHAPED
        if statement.makes is not None:
            self.tables[statement.makes] = TableModel(statement.makes)
        self._ids = {name: dict(table.ids) for name, table in self.tables.items()}
        self._candidates = {
            (name, branch): [rows]
            for name, table in self.tables.items()
            for branch, rows in {**dict.fromkeys(["main"], ()), **table.rows}.items()
        }

    def _look(self, table: TableModel) -> bool:
        """Whether the metadata of a table is another one than before."""
        found = self.warehouse.document(self.namespace, table.name)
        place, document = found or (None, None)
        if place == table.place:
            return False
        if document is not None and document.get("format-version") == 1:
            document = {**document, "refs": document.get("refs", {})}
        table.place, table.document = place, document
        return True

    def _settle(self, who: str, statement: Statement | None = None) -> bool:
        """Take what was committed into the model; whether anything was."""
        statement = statement or self._statement
        changed = False
        for table in self.tables.values():
            old = table.document
            if not self._look(table):
                continue
            changed = True
            if who == "own":
                self._applied += 1
                self._changed.add(table.name)
            if table.document is None:
                table.rows, table.heads = {}, {}
                continue
            self._follow(table, old, statement, who)
        if changed:
            self._observe()
            for name, table in self.tables.items():
                for branch, rows in table.rows.items():
                    known = self._candidates.setdefault((name, branch), [])
                    if not known or known[-1] is not rows:
                        known.append(rows)
        return changed

    def _follow(
        self, table: TableModel, old: dict[str, Any] | None, statement: Statement | None, who: str
    ) -> None:
        document = table.document
        assert document is not None
        if (
            statement is not None
            and statement.columns == "replaced"
            and statement.table == table.name
        ):
            self._named(table)
        if statement is not None and statement.makes == table.name and not table.ids:
            table.ids = {each["name"]: each["id"] for each in table.schema()}
        if old is not None:
            table.respecced |= old["default-spec-id"] != document["default-spec-id"]
            table.upgraded |= old["format-version"] != document["format-version"]
        refs = {
            name: ref["snapshot-id"]
            for name, ref in (document.get("refs") or {}).items()
            if ref["type"] == "branch"
        }
        for name in [each for each in table.rows if each not in refs]:
            table.rows.pop(name)
            table.heads.pop(name, None)
        if "main" not in refs:
            table.rows["main"] = ()
        if statement is not None and statement.head is not None and refs.get("main") not in (
            statement.head, table.heads.get("main"),
        ):  # fmt: skip
            raise Fault(f"main is at {refs.get('main')} after {statement.text}")
        for branch, head in refs.items():
            if table.heads.get(branch) == head:
                continue
            if head in table.snapshots:
                rows = table.snapshots[head]
                if rows is None:
                    raise Fault(f"{branch} went to {head}, which the campaign does not know")
                table.rows[branch], table.heads[branch] = rows, head
                if table.upgraded:
                    for row in rows:
                        row.row_id = None
            else:
                self._grown(table, branch, statement, who)
        ids = {each["snapshot-id"] for each in document["snapshots"]}
        table.snapshots = {key: rows for key, rows in table.snapshots.items() if key in ids}

    def _grown(self, table: TableModel, branch: str, statement: Statement | None, who: str) -> None:
        """A branch has new snapshots, by this statement."""
        assert statement is not None
        parts = [
            each for each in statement.parts
            if each.table == table.name and each.branch == branch
        ]  # fmt: skip
        now = table.at(branch)
        if statement.kind in ("branch", "ref"):
            # Of a table without a snapshot it is an empty one, on whatever is there by now.
            assert table.document is not None
            head = table.document["refs"][branch]["snapshot-id"]
            table.new_head(branch, [table.snapshots.get(table.parents()[head] or -1) or ()])
            return
        if not parts:
            raise Fault(f"{table.name} {branch} has a new snapshot by {statement.text}")
        candidates = [now]
        if who == "own":
            if statement.many is False and self._grown_before(table, branch):
                raise Fault(f"{statement.text} was committed twice")
            if statement.makes == table.name:
                candidates = self._candidates[("t", "main")]
            else:
                candidates = [*self._candidates.get((table.name, branch), ()), now]
        found = [*outcomes(parts, now, candidates)]
        if who == "own" and "replace table" in self._raced:
            # A later statement of a transaction may be the first that sees the new table.
            found += [self._renamed(table, now, each[-1]) for each in found]
        if not found:
            raise Fault(f"{statement.text} had to conflict, and was committed")
        states = found[0]
        if len({repr(sorted(map(repr, table.shown(each[-1])))) for each in found}) > 1:
            shown = self._read(self.reader, table, branch)
            states = next(
                (each for each in found if not difference(shown, table.shown(each[-1]))), states
            )
        table.new_head(branch, states)
        if statement.appends and branch != "main":
            table.appended[table.heads[branch]] = statement.appends

    def _renamed(self, table: TableModel, now: Rows, rows: Rows) -> list[Rows]:
        """New rows by the field ids that the columns of a table have by now."""
        before, known = self._ids.get(table.name, {}), {id(each) for each in now}
        ids = {number: table.ids[name] for name, number in before.items() if name in table.ids}

        def renamed(row: Row) -> Row:
            return Row({ids.get(key, key): value for key, value in row.cells.items()})

        return [tuple(each if id(each) in known else renamed(each) for each in rows)]

    def _grown_before(self, table: TableModel, branch: str) -> bool:
        key = f"{table.name} {branch}"
        known = key in self._grown_by
        self._grown_by.add(key)
        return known

    @property
    def _grown_by(self) -> set[str]:
        own = self._statement
        if getattr(self, "_grown_of", None) is not own:
            self._grown_of, self._grown_keys = own, set[str]()
        return self._grown_keys

    # ------------------------------------------------------------------ judging

    def _judge(self, statement: Statement, error: BaseException | None) -> None:
        """Whether the statement said what is true of it."""
        applied = self._applied > 0
        if not self._raced:
            self._judge_whole(statement)
        if error is not None:
            self._tell(f"   -> {type(error).__name__} {str(error)[:200]}")
            self.outcome.kinds[f"{statement.kind} refused"] += 1
        if isinstance(error, icesql.errors.CommitStateUnknownError):
            if "fault" not in self._raced:
                raise Fault(f"unknown outcome without a reason: {statement.text}: {error}")
            return
        if error is None:
            if applied or not statement.parts or statement.kind == "rewrite_data_files":
                return
            for part in statement.parts[:1]:
                table = self.tables[part.table]
                if table.document is None:
                    raise Fault(f"committed, and it is not there: {statement.text}")
                seen = self._candidates.get((part.table, part.branch), [table.at(part.branch)])
                if not any(self._is_nothing(table, part, each) for each in seen):
                    raise Fault(f"committed, and nothing is changed: {statement.text}")
            return
        if statement.makes is not None and not self.tables[statement.makes].at("main"):
            # A table without rows gets its uuid from the server: nothing tells it from another's.
            applied = applied and "fault" not in self._raced
        if applied and not statement.many:
            raise Fault(
                f"refused, and it is committed: {statement.text}: {type(error).__name__} {error}"
            )
        if not isinstance(error, icesql.Error):
            trace = "".join(traceback.format_exception(error)[-3:])
            raise Fault(f"a foreign exception of {statement.text}: {trace}")
        if not self._may_refuse(statement, error, raced=bool(self._raced)):
            raise Fault(f"refused: {statement.text}: {type(error).__name__}: {error}")

    def _judge_whole(self, statement: Statement) -> None:
        """What was committed of a transaction is all of it."""
        if not statement.kind.startswith("transaction") or not self._changed:
            return
        for name in {each.table for each in statement.parts} - self._changed:
            table = self.tables[name]
            own, rows = [each for each in statement.parts if each.table == name], table.at("main")
            shown = table.shown(rows)
            left = [table.shown(each[-1]) for each in outcomes(own, rows, [rows])]
            if all(difference(each, shown) for each in left):
                raise Fault(f"{statement.text} was committed without what it does to {name}")

    def _is_nothing(self, table: TableModel, part: Any, rows: Rows) -> bool:
        return not difference(table.shown(part.effect(rows, rows)), table.shown(rows))

    def _may_refuse(self, statement: Statement, error: Exception, *, raced: bool) -> bool:
        if not isinstance(error, icesql.Error):
            return False
        text = str(error)
        if any(each in text for each in statement.refusals):
            return True
        if isinstance(error, icesql.NotSupportedError):
            return True
        if not raced:
            return False
        if isinstance(error, icesql.errors.CommitConflictError):
            return True
        if "fault" in self._raced and self.warehouse.kind == "rest":
            return True  # of the gateway's own words, as long as nothing was changed
        reshaped = (
            icesql.ProgrammingError,
            icesql.errors.CatalogError,
            icesql.errors.TypeMismatchError,
        )
        if self._raced & _RESHAPED and isinstance(error, reshaped):
            return True
        return bool(statement.reads and self._raced & _CLEANED and "no such file" in text)

    # ------------------------------------------------------------------ reading

    def _read(
        self, con: icesql.Connection, table: TableModel, branch: str = "main", more: str = ""
    ) -> list[tuple[Any, ...]]:
        name = self.draw.name(table.name, branch)
        with self.moments.apart():
            return told(con.execute(f"SELECT *{more} FROM {name}").fetchall())

    def _observe(self) -> None:
        """The row ids at this moment, by a connection that was there before."""
        for table in self.tables.values():
            if table.document is not None and table.version > 2:
                self._check(self.reader, table)

    def _check_all(self) -> None:
        with self.moments.apart(), self.warehouse.connect() as con:
            for table in self.tables.values():
                if table.document is not None:
                    self._check(con, table)

    def _check(self, con: icesql.Connection, table: TableModel) -> None:
        for branch in ["main", *(each for each in table.rows if each != "main")]:
            rows, lineage = table.at(branch), table.version > 2
            try:
                found = self._read(con, table, branch, ", _row_id" if lineage else "")
            except Exception as error:
                lost = f"{type(error).__name__}: {error}"
                raise Fault(f"{table.name} {branch} cannot be read: {lost}") from None
            shown = [each[:-1] for each in found] if lineage else found
            if lost := difference(shown, table.shown(rows)):
                raise Fault(f"{table.name} {branch}: {len(shown)} rows of {len(rows)}: {lost}")
            if lineage:
                self._check_lineage(table, branch, found)

    def _check_lineage(self, table: TableModel, branch: str, found: list[tuple[Any, ...]]) -> None:
        known = [each[-1] for each in found if each[-1] is not None]  # as text, see ``told``
        if len(known) != len(set(known)):
            twice = [each for each, count in Counter(known).items() if count > 1]
            raise Fault(f"{table.name} {branch}: row ids {twice} are there twice")
        rows = table.at(branch)
        shown = table.shown(rows)
        counts = Counter(map(repr, shown))
        ids = {repr(each[:-1]): each[-1] for each in found}
        for row, cells in zip(rows, shown, strict=True):
            if counts[repr(cells)] > 1:
                continue
            now = ids[repr(cells)]
            if table.upgraded and branch != "main":
                continue  # the rows of both get their ids by the next commit of each
            if row.row_id is not None and now != row.row_id:
                raise Fault(
                    f"{table.name} {branch}: the row {cells} had the row id {row.row_id}, and has "
                    f"{now}"
                )
            row.row_id = now

    def _check_past(self, con: icesql.Connection, table: TableModel) -> None:
        """Every snapshot that is retained."""
        assert table.document is not None
        for each in table.document["snapshots"]:
            number = each["snapshot-id"]
            rows = table.snapshots.get(number)
            if rows is None:
                continue
            self._past[number] = table.shown(rows, each.get("schema-id"))
            sql = f"SELECT * FROM {self.draw.name(table.name)} FOR VERSION AS OF {number}"
            try:
                with self.moments.apart():
                    found = con.execute(sql).fetchall()
            except Exception as error:
                lost = f"{type(error).__name__}: {error}"
                raise Fault(f"snapshot {number} cannot be read: {lost}") from None
            self._check_known(table.name, number, told(found))

    def _check_known(self, where: str, number: int, found: list[Any]) -> None:
        """The rows of a snapshot that a table has or has had."""
        if number in self._past and (lost := difference(found, self._past[number])):
            raise Fault(f"{where}, snapshot {number}: {lost}")

    # ------------------------------------------------------------------ files

    @staticmethod
    def _orphans(table: TableModel) -> set[str]:
        """Files that the table does not need, by its metadata alone."""
        assert table.document is not None
        assert table.place is not None
        needed, there = files.needed(table.place, table.document), files.there(table.document)
        gone = {each for each in needed - there if not each.endswith(".metadata.json")}
        if gone:
            raise Fault(f"files of the table are gone: {sorted(gone)[:3]}")
        return there - needed

    def _remove_orphans(self, table: TableModel, statement: Statement) -> None:
        """``remove_orphan_files`` removes these, and no others."""
        name, found = self.draw.name(table.name), self._orphans(table)
        self.warehouse.make_old(self.namespace)
        text = f"CALL system.remove_orphan_files('{name}')"
        try:
            rows = self.other.execute(text).fetchall()
        except icesql.NotSupportedError as error:
            if _OLD not in str(error):
                raise
            # Metadata that the catalog never took could be another table's, until a commit is newer.
            self.other.execute(f"ALTER TABLE {name} SET TBLPROPERTIES ('touched' = 'x')")
            self._settle("other", statement)
            self.warehouse.make_old(self.namespace)
            found = self._orphans(table)
            rows = self.other.execute(text).fetchall()
        removed = {files.local(path) for (path,) in rows}
        if removed != found or self._orphans(table):
            lost, extra = sorted(found - removed)[:3], sorted(removed - found)[:3]
            raise Fault(f"orphans that are left: {lost}, removed that are none: {extra}")

    def _look_after(self, table: TableModel) -> None:
        """Follow the doctor, or run maintenance: what was promised comes."""
        assert table.document is not None
        name, follows = self.draw.name("t"), self.chance.random() < 0.5

        def document() -> dict[str, Any]:
            self._look(table)
            assert table.document is not None
            return table.document

        self.warehouse.make_old(self.namespace)
        try:
            if follows:
                open_ended = table.respecced or len(table.rows) > 1
                wrong = [*upkeep.follow_doctor(self.other, name, document, open_ended)]
            else:
                wrong = [*upkeep.maintain(self.other, name, document, self.warehouse.folder)]
        except icesql.Error as error:
            wrong = [f"{type(error).__name__}: {error}"]
        if wrong:
            raise Fault(f"{'the doctor' if follows else 'maintenance'}: {wrong}")

    def _check_pyiceberg(self, table: TableModel) -> None:
        if self.pyiceberg is None or table.version > 2 or table.keyed or table.place is None:
            return
        try:
            found = others.rows_by_pyiceberg(table.place)
        except Exception as error:
            self.outcome.foreign.append(f"PyIceberg: {type(error).__name__} {error}")
            return
        wanted = map(others.emptied, table.shown(table.at("main")))
        if lost := difference(map(others.emptied, told(found)), wanted):
            raise Fault(f"by PyIceberg: {lost}")

    def _check_java(self, table: TableModel) -> None:
        if self.java is None:
            return
        name = f"c.{self.draw.name(table.name)}"
        try:
            found = self.java.run(f"SELECT * FROM {name}")
        except RuntimeError as error:
            raise Fault(f"Java cannot read it: {error}") from None
        if lost := difference(told(found), table.shown(table.at("main"))):
            raise Fault(f"by Java: {lost}")

    def _drop(self, name: str) -> None:
        """What CREATE TABLE AS made, or another one of its name."""
        if self.tables[name].document is not None:
            with self.moments.apart():
                self.other.execute(f"DROP TABLE {self.draw.name(name)} PURGE")
        del self.tables[name]
