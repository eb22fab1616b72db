"""One history: icesql's statements, another writer inside of each, and a check of the result."""

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
from tests.campaigns.histories.drawing import Drawing, Shape, Statement
from tests.campaigns.histories.model import Fault, Row, Rows, TableModel, difference, outcomes, told
from tests.campaigns.histories.moments import Moments

LENGTH = 6
# Concurrent changes of these explain an error about a missing column, branch or partition field.
RESHAPED = {"columns", "replace table", "partitioning", "upgrade", "branch"}
_OLD = "any commit to the table makes it old"
_CLEANED = {"expire", "orphans"}


def run_texts(con: icesql.Connection, texts: tuple[str, ...]) -> None:
    """Run statements, and fetch their rows; ``maintain NAME`` is a run of maintenance."""
    for text in texts:
        if text.startswith("maintain "):
            con.maintain(text.removeprefix("maintain "))
            continue
        cursor = con.execute(text)
        if cursor.description:
            cursor.fetchall()


@dataclass
class Outcome:
    """The outcome of a history."""

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
    """The tables of one history, a model of them, and the judge of the statements' results.

    ``_drawn_own`` draws statements; other writers may commit in ``_perform`` and ``_after``.
    """

    def __init__(
        self,
        seed: int,
        warehouse: Warehouse,
        *,
        pyiceberg: others.PyIceberg | None = None,
    ) -> None:
        self.chance = random.Random(f"two writers {seed}")
        self.shape = Shape(self.chance)
        self.warehouse, self.namespace = warehouse, f"h{seed}"
        self.pyiceberg = pyiceberg
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
        # A fault found inside of a statement, which must not treat it as its own error.
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
                warehouse.gateway.relays, warehouse.gateway.looks = [], []
                warehouse.gateway.late.clear()
        self.outcome.moments += self.moments.counts
        return self.outcome

    def _progressed(self, progress: Any) -> None:
        """A statement that is planned again reads only the current rows."""
        if progress.stage != "planning again" or self._statement is None:
            return
        self._tell("   planned again")
        self.outcome.kinds[f"{self._statement.kind} planned again"] += 1
        self._candidates = self._now()

    def _tell(self, text: str) -> None:
        self.outcome.told.append(text)

    def _begin(self) -> None:
        self.other.execute(f"CREATE SCHEMA {self.namespace}")
        for name, table in self.tables.items():
            text = self.shape.create(f"{self.namespace}.{name}")
            self._tell(text)
            self.own.execute(text)
            self._look(table)
            self._named(table)
        self._fill()

    def _fill(self) -> None:
        """Fill new tables before the first statement."""

    def _named(self, table: TableModel) -> None:
        table.ids = {each["name"]: each["id"] for each in table.schema()}

    def _step(self) -> None:
        """Run one statement of icesql, with other writers inside of it."""
        statement = self._drawn_own()
        self.outcome.kinds[statement.kind] += 1
        self._begun(statement)
        error = self._perform(statement)
        if self._fault is not None:
            self._tell(f"   -> {type(error).__name__} {str(error)[:200]}")
            raise self._fault
        if "BEGIN" in statement.texts and error is not None:
            with suppress(icesql.Error):
                self.own.execute("ROLLBACK")
        self._settle("own")
        self._judge(statement, error)
        self._after(statement)
        self._check_all()
        if statement.makes is not None:
            self._drop(statement.makes)
        self._statement = None

    def _drawn_own(self) -> Statement:
        raise NotImplementedError

    def _perform(self, statement: Statement) -> BaseException | None:
        """Run a statement; return the error with which it ended."""
        if statement.kind == "orphans" and self._is_quiet():
            self.warehouse.make_old(self.namespace)
        self._tell(f"OWN {statement.text}")
        try:
            run_texts(self.own, statement.texts)
        except (Exception, KeyboardInterrupt) as error:
            return error
        return None

    def _is_quiet(self) -> bool:
        """True if no request is on its way to the catalog, whose files would be old on arrival."""
        return True

    def _after(self, statement: Statement) -> None:
        """Changes of other writers after the statement."""

    def _end(self) -> None:
        with self.warehouse.connect() as con:
            for table in self.tables.values():
                self._check(con, table)
                self._check_past(con, table)
                self._check_pyiceberg(table)

    def _act(self, moment: str) -> None:
        """No other writer commits."""

    def _swapped(self) -> None:
        try:
            self._settle("own")
        except Fault as error:
            self._fault = self._fault or error

    # ------------------------------------------------------------------ commits

    def _begun(self, statement: Statement) -> None:
        self._statement, self._applied, self._changed = statement, 0, set[str]()
        self._raced = set()
        if statement.makes is not None:
            self.tables[statement.makes] = TableModel(statement.makes)
        self._ids = {name: dict(table.ids) for name, table in self.tables.items()}
        self._candidates = self._now()

    def _now(self) -> dict[tuple[str, str], list[Rows]]:
        """The rows of each branch: all rows that the statement can have read."""
        return {
            (name, branch): [rows]
            for name, table in self.tables.items()
            for branch, rows in {"main": (), **table.rows}.items()
        }

    def _look(self, table: TableModel) -> bool:
        """Load the metadata of a table; True if it has changed."""
        found = self.warehouse.document(self.namespace, table.name)
        place, document = found or (None, None)
        if place == table.place:
            return False
        if document is not None and document.get("format-version") == 1:
            document = {**document, "refs": document.get("refs", {})}
        table.place, table.document = place, document
        return True

    def _settle(self, who: str, statement: Statement | None = None) -> bool:
        """Apply new commits to the model; True if there were any."""
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
        """Handle new snapshots of a branch, which this statement committed."""
        assert statement is not None
        parts = [
            each for each in statement.parts
            if each.table == table.name and each.branch == branch
        ]  # fmt: skip
        now = table.at(branch)
        if statement.kind in ("branch", "ref"):
            # For a table without a snapshot: an empty snapshot on the current rows.
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
            # A later statement of a transaction may be the first to see the new table.
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
        """New rows with the current field ids of the table's columns."""
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
        """Check that the statement reported the truth."""
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
            # A table without rows gets its uuid from the server, which cannot be distinguished.
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
        """Check that a transaction was committed as a whole."""
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
            return True  # the gateway's own error, if nothing was changed
        reshaped = (
            icesql.ProgrammingError,
            icesql.errors.CatalogError,
            icesql.errors.TypeMismatchError,
        )
        if self._raced & RESHAPED and isinstance(error, reshaped):
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
        """Record the row ids at this moment, by an older connection."""
        for table in self.tables.values():
            if table.document is not None and table.version > 2:
                self._check(self.reader, table)

    def _check_all(self) -> None:
        with self.moments.apart(), self.warehouse.connect() as con:
            for table in self.tables.values():
                if table.document is not None:
                    self._check(con, table)
                    self._check_plan(table)

    def _check_plan(self, table: TableModel) -> None:
        """Check that no equality delete is planned for rows of its own commit."""
        if table.keyed and table.rows["main"]:
            for task in others.planned(self.warehouse.load(self.namespace, table.name)[1]).values():
                own = task.data_file.sequence_number
                if any(each.equality_ids and each.sequence_number <= own for each in task.deletes):
                    raise Fault(
                        f"{table.name}: {task.data_file.path} has deletes of its own commit"
                    )

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
                continue  # both get row ids for these rows with their next commit
            if row.row_id is not None and now != row.row_id:
                raise Fault(
                    f"{table.name} {branch}: the row {cells} had the row id {row.row_id}, and has "
                    f"{now}"
                )
            row.row_id = now

    def _check_past(self, con: icesql.Connection, table: TableModel) -> None:
        """Check every retained snapshot, and every tag."""
        assert table.document is not None
        name, refs = self.draw.name(table.name), table.document.get("refs") or {}
        tags = {key: each["snapshot-id"] for key, each in refs.items() if each["type"] == "tag"}
        for each in table.document["snapshots"]:
            number = each["snapshot-id"]
            rows = table.snapshots.get(number)
            if rows is None:
                continue
            if number not in self._past:
                self._past[number] = table.shown(rows, each.get("schema-id"))
            for version in (number, *(f"'{tag}'" for tag, at in tags.items() if at == number)):
                sql = f"SELECT * FROM {name} FOR VERSION AS OF {version}"
                try:
                    with self.moments.apart():
                        found = told(con.execute(sql).fetchall())
                except Exception as error:
                    lost = f"{type(error).__name__}: {error}"
                    raise Fault(f"version {version} cannot be read: {lost}") from None
                self._check_known(table.name, number, found)

    def _check_known(self, where: str, number: int, found: list[Any]) -> None:
        """Check the rows of a current or former snapshot of a table."""
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
        """Check that ``remove_orphan_files`` removes these files, and no others."""
        name, found = self.draw.name(table.name), self._orphans(table)
        self.warehouse.make_old(self.namespace)
        text = f"CALL system.remove_orphan_files('{name}')"
        try:
            rows = self.other.execute(text).fetchall()
        except icesql.NotSupportedError as error:
            if _OLD not in str(error):
                raise
            # Metadata of a failed commit could be another table's, until there is a newer commit.
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
        """Follow the doctor, or run maintenance, and check the predictions."""
        assert table.document is not None
        name, follows = self.draw.name("t"), self.chance.random() < 0.5

        def document() -> dict[str, Any]:
            found = self.warehouse.document(self.namespace, table.name)
            assert found is not None
            return found[1]

        self.warehouse.make_old(self.namespace)
        try:
            if follows:
                open_ended = table.respecced or len(table.rows) > 1
                wrong = [*upkeep.follow_doctor(self.other, name, document, open_ended)]
            else:
                wrong = [*upkeep.maintain(self.other, name, document, self.warehouse.folder)]
        except icesql.Error as error:
            wrong = [f"{type(error).__name__}: {error}"]
        self._settle("other", self.draw.maintain(table))
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

    def _drop(self, name: str) -> None:
        """Drop a table that CREATE TABLE AS created, or another one with its name."""
        if self.tables[name].document is not None:
            with self.moments.apart():
                self.other.execute(f"DROP TABLE {self.draw.name(name)} PURGE")
        del self.tables[name]
