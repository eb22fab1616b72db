"""One history: statements of icesql, another writer inside of each, and what has to be left."""

from __future__ import annotations

import random
import traceback
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import icesql
from tests.campaigns.histories import others
from tests.campaigns.histories.catalogs import Warehouse
from tests.campaigns.histories.drawing import PARTITIONS, Drawing, Shape, Statement
from tests.campaigns.histories.model import (
    Fault,
    Part,
    Row,
    Rows,
    TableModel,
    difference,
    inserted,
    outcomes,
)
from tests.campaigns.histories.model import deleted as rows_deleted
from tests.campaigns.histories.moments import Moments
from tests.campaigns.histories.server import drawn_fault

LENGTH = 6
# Another's change of these is a reason not to find a column, a branch, a partition field.
_RESHAPED = {"columns", "replace table", "partitioning", "upgrade", "branch"}
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
        self.shape = Shape.drawn(self.chance)
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
            text = self.shape.create(f"{self.namespace}.{name}")
            self._tell(text)
            self.other.execute(text)
            self._look(table)
            self._named(table)
            for _ in range(self.chance.randint(2, 4)):
                self._other(self.draw.insert(table))
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
        draw, table = self.draw, self.tables["t"]
        has_branch = "dev" in table.rows
        choices: list[tuple[int, Any]] = [
            (5, lambda: draw.insert(table)), (2, lambda: draw.insert_select(table)),
            (6, lambda: draw.delete(table)), (5, lambda: draw.update(table)),
            (4, lambda: draw.merge(table)), (5, lambda: draw.overwrite(table)),
            (1, lambda: draw.truncate(table)), (5, lambda: draw.transaction([table])),
            (2, lambda: draw.create_as(table, f"c{len(self.outcome.told)}")),
            (7, lambda: draw.compaction(table)), (3, lambda: draw.rewrite_manifests(table)),
            (4 if self.shape.version == 2 else 1, lambda: draw.rewrite_deletes(table)),
            (3, lambda: draw.convert(table)),
            (2, lambda: draw.expire(table)), (1, lambda: draw.orphans(table)),
            (1, lambda: draw.rollback(table)), (2, lambda: draw.branch(table)),
            (2, lambda: draw.columns_changed(table)), (1, lambda: draw.partitions_changed(table)),
            (1, lambda: draw.replace(table)),
        ]  # fmt: skip
        if has_branch:
            choices += [
                (6, lambda: draw.insert(table, "dev")),
                (2, lambda: draw.delete(table, "dev")),
            ]
        if "u" in self.tables:
            both = [*self.tables.values()]
            choices.append((10, lambda: draw.transaction(both)))
        if table.version < 3 and not has_branch:
            choices.append((1, lambda: draw.upgrade(table)))
        return self._chosen(choices)

    def _drawn_other(self) -> Statement:
        """What another writer does."""
        chance, draw = self.chance, self.draw
        own = self._statement
        table = self.tables[chance.choice([*self.tables])] if own is None else self.tables["t"]
        if own is not None and own.kind == "transaction of two" and chance.random() < 0.5:
            table = self.tables["u"]
        has_branch = "dev" in table.rows
        choices: list[tuple[int, Any]] = [
            (8, lambda: draw.insert(table)), (4, lambda: draw.delete(table)),
            (4, lambda: draw.update(table)), (3, lambda: draw.merge(table)),
            (3, lambda: draw.overwrite(table)), (1, lambda: draw.truncate(table)),
            (3, lambda: draw.compaction(table)), (1, lambda: draw.rewrite_manifests(table)),
            (1, lambda: draw.rewrite_deletes(table)), (3, lambda: draw.expire(table)),
            (2, lambda: draw.convert(table)),
            (4, lambda: draw.rollback(table)), (2, lambda: draw.columns_changed(table)),
            (2, lambda: draw.replace(table, text_x=chance.random() < 0.5)),
            (2, lambda: draw.branch(table)),
        ]  # fmt: skip
        if table.version > 1 and not table.respecced:
            choices.append((12, lambda: self._equality_delete(table)))
        if table.version > 1:
            choices.append((4, lambda: self._position_delete(table)))
        if table.version < 3 and not has_branch:
            choices.append((3, lambda: draw.upgrade(table)))
        if own is None or own.kind != "overwrite dynamic":
            choices.append((1, lambda: draw.partitions_changed(table)))
        else:
            choices.append((12, lambda: draw.overwrite(table)))
        if has_branch:
            choices += [
                (4, lambda: draw.insert(table, "dev")),
                (3, lambda: self._drop_branch(table)),
            ]
        # It does not see equality deletes, and would write the rows that they delete anew.
        if self.pyiceberg is not None and table.version < 3:
            choices.append((4, lambda: self._pyiceberg(table)))
        if self.java is not None:
            choices.append((10, lambda: self._by_java(table)))
        return self._chosen(choices)

    def _chosen(self, choices: list[tuple[int, Any]]) -> Statement:
        while True:
            (made,) = self.chance.choices([each for _, each in choices],
                                          [weight for weight, _ in choices])  # fmt: skip
            statement = made()
            if statement is not None:
                found: Statement = statement
                return found

    def _drop_branch(self, table: TableModel) -> Statement:
        sql = f"ALTER TABLE {self.draw.name(table.name)} DROP BRANCH dev"
        return Statement("branch", (sql,), (), ("branch",), table=table.name)

    # ------------------------------------------------------------------ other writers

    def _equality_delete(self, table: TableModel) -> Statement | None:
        """As Flink's: deletes by key of what is older, with new rows or without."""
        chance, ids = self.chance, table.ids
        partition: tuple[Any, ...] = ()
        p = None
        if self.shape.partitioned:
            p = chance.choice(PARTITIONS)
            partition = (p,)
        known = [row.cells.get(ids["id"]) for row in table.at("main")]
        some = sorted({each for each in known if each is not None} or {0})
        wanted = sorted(chance.sample(some, min(len(some), chance.randint(1, 2))))
        rows = None
        if chance.random() < 0.35:
            rows = self.draw.cells(table, ids=wanted)
            for each in rows:
                if self.shape.partitioned:
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
        told = f"equality delete of {wanted} in {partition}, {rows or 'no rows'}"
        return Statement(told, (), (Part(table.name, effect),), run=run, table=table.name)

    def _position_delete(self, table: TableModel) -> Statement | None:
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

    def _pyiceberg(self, table: TableModel) -> Statement | None:
        assert self.pyiceberg is not None
        names, writer, chance = table.names(), self.pyiceberg, self.chance
        if "x" not in names or table.type_of("x") == "string":
            return None
        called = {number: names[own] for own, number in table.ids.items()}

        def by_name(cells: list[dict[int, Any]]) -> list[dict[str, Any]]:
            return [{called[key]: value for key, value in each.items()} for each in cells]

        place = self.namespace, table.name
        cells = self.draw.cells(table)
        if table.keyed or chance.random() < 0.4:
            part = Part(table.name, inserted(cells))
            return Statement(
                "pyiceberg append", (), (part,),
                run=lambda: writer.append(*place, by_name(cells)), table=table.name,
            )  # fmt: skip
        number = chance.choice(range(12))
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

    def _by_java(self, table: TableModel) -> Statement | None:
        assert self.java is not None
        draw, java = self.draw, self.java
        drawn = self.chance.choice([draw.insert, draw.delete, draw.update, draw.compaction])(table)
        texts = tuple(f"{each}".replace("s.", "s.") for each in drawn.texts)
        name = draw.name(table.name)

        def run() -> None:
            for text in texts:
                java.run(
                    text.replace("CALL system", "CALL c.system").replace(f" {name} ", f" c.{name} ")
                )

        return Statement(
            f"java {drawn.kind} {drawn.text}", (), drawn.parts, run=run, table=table.name
        )

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
            drawn = self.draw.insert(self.tables["t"]) if count == 4 else self._drawn_other()
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
        if told := difference(table.shown(rows), table.shown(wanted)):
            raise Fault(f"committed nothing: {statement.text}: {told}")

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
            told: list[int] = []

            def between() -> None:
                with self.moments.apart():
                    self._swapped()
                    if not told and chance.random() < 0.3:
                        told.append(1)
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
            named = {each["name"]: each["id"] for each in table.schema()}
            table.ids = {each: named[each] for each in ("id", "p", "x")}
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
        if statement.kind == "branch":
            # Of a table without a snapshot it is an empty one, on whatever is there by now.
            assert table.document is not None
            head = table.document["refs"][branch]["snapshot-id"]
            parents = {s["snapshot-id"]: s.get("parent-snapshot-id")
                       for s in table.document["snapshots"]}  # fmt: skip
            table.new_head(branch, [table.snapshots.get(parents[head]) or ()])
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
            told = "".join(traceback.format_exception(error)[-3:])
            raise Fault(f"a foreign exception of {statement.text}: {told}")
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
            return con.execute(f"SELECT *{more} FROM {name}").fetchall()

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
                told = f"{type(error).__name__}: {error}"
                raise Fault(f"{table.name} {branch} cannot be read: {told}") from None
            shown = [each[:-1] for each in found] if lineage else found
            if told := difference(shown, table.shown(rows)):
                raise Fault(f"{table.name} {branch}: {len(shown)} rows of {len(rows)}: {told}")
            if lineage:
                self._check_lineage(table, branch, found)

    def _check_lineage(self, table: TableModel, branch: str, found: list[tuple[Any, ...]]) -> None:
        known = [each[-1] for each in found if each[-1] is not None]
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
                told = f"{type(error).__name__}: {error}"
                raise Fault(f"snapshot {number} cannot be read: {told}") from None
            self._check_known(table.name, number, found)

    def _check_known(self, where: str, number: int, found: list[Any]) -> None:
        """The rows of a snapshot that a table has or has had."""
        if number in self._past and (told := difference(found, self._past[number])):
            raise Fault(f"{where}, snapshot {number}: {told}")

    def _check_pyiceberg(self, table: TableModel) -> None:
        if self.pyiceberg is None or table.version > 2 or table.keyed or table.place is None:
            return
        try:
            found = others.rows_by_pyiceberg(table.place)
        except Exception as error:
            self.outcome.foreign.append(f"PyIceberg: {type(error).__name__} {error}")
            return
        if told := difference(found, table.shown(table.at("main"))):
            raise Fault(f"by PyIceberg: {told}")

    def _check_java(self, table: TableModel) -> None:
        if self.java is None:
            return
        name = f"c.{self.draw.name(table.name)}"
        try:
            found = self.java.run(f"SELECT * FROM {name}")
        except RuntimeError as error:
            raise Fault(f"Java cannot read it: {error}") from None
        if told := difference(found, table.shown(table.at("main"))):
            raise Fault(f"by Java: {told}")

    def _drop(self, name: str) -> None:
        """What CREATE TABLE AS made, or another one of its name."""
        if self.tables[name].document is not None:
            with self.moments.apart():
                self.other.execute(f"DROP TABLE {self.draw.name(name)} PURGE")
        del self.tables[name]
