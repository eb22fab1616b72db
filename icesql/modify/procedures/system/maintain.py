"""maintain: run the other procedures on one table, as far as it needs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icesql.errors import OperationalError, ProgrammingError
from icesql.modify.procedures.procedure import TABLE, Parameter, Plan, Rows, Step, procedure

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from icesql.catalog.table import Table
    from icesql.health.facts import Performed
    from icesql.health.runs import TableReport
    from icesql.health.upkeep import Door
    from icesql.modify.procedures.call import Call
    from icesql.sql.writes.procedure_calls import CallProcedure


@procedure(
    "does what a table needs: compaction, conversion of deletes, manifests, expiry and more",
    TABLE,
    Parameter("actions", "array<string>", "convert, compact, deletes, manifests, expire"),
    Parameter("policy", "map<string, string>"),
    Parameter("dry_run", "boolean", "false"),
    rows="action varchar, status varchar, predicted varchar, reached varchar, "
    "seconds double, statement varchar, note varchar",
)
def maintain(call: Call) -> Plan:
    """Run the procedures that a table needs by its policy."""
    import os
    from datetime import UTC, datetime

    from icesql.health.policy import policy_of_texts
    from icesql.health.runs import changes_text
    from icesql.health.upkeep import Run, keep_healthy

    try:
        policy = policy_of_texts(call["actions"], call["policy"] or {})
    except ProgrammingError as error:
        raise call.wrong(
            "policy" if call["policy"] else "actions", f"cannot be: {error}"
        ) from error
    call.target()  # raises for a missing table, and for a branch
    door = _door(call)
    parts = call.table_name().parts

    def look(dry_run: bool) -> TableReport:
        run = Run(os.urandom(8).hex(), lambda: datetime.now(UTC), dry_run=dry_run)
        return keep_healthy(parts, policy, door, run)

    def run() -> Rows:
        done = look(bool(call["dry_run"]))
        call.query.check()  # a cancelled or timed-out statement fails as a whole
        if done.status == "failed" and not done.actions:
            raise OperationalError(done.note)
        snapshots = [each.snapshot_id for each in done.actions if each.snapshot_id is not None]
        rows = [
            (
                each.action,
                each.status,
                changes_text(done.before, each.predicted),
                changes_text(done.before, each.reached),
                each.seconds,
                each.statement,
                each.note,
            )
            for each in done.actions
        ]
        return Rows(rows, _note(done), snapshots[-1] if snapshots else None)

    if not call.explain:
        return Plan((), run)
    planned = look(True)
    return Plan(_steps(planned), run, _note(planned))


def _note(done: TableReport) -> str:
    from icesql.health.runs import changes_text

    if done.status == "nothing":
        return "nothing is to be done"
    if done.status in ("damaged", "skipped", "gone"):
        return f"{done.status}: {done.note}"
    return changes_text(done.before, done.reached or done.predicted)


def _steps(planned: TableReport) -> Iterator[Step]:
    from icesql.health.runs import changes_text

    for each in planned.actions:
        if each.status == "refused":
            yield Step("keep", each.action, planned.table, each.note)
        else:
            promise = changes_text(planned.before, each.predicted)
            reason = f"{each.note}; {promise}" if promise else each.note
            yield Step("call", each.action, each.statement, reason, each.bytes or None)


def _door(call: Call) -> Door:
    from contextlib import closing
    from copy import copy

    from msgspec.structs import replace

    from icesql.health.facts import Performed
    from icesql.health.upkeep import Door
    from icesql.modify.procedures.call import call as run_call

    services = call.services

    def load(parts: Sequence[str]) -> Table:
        return call.target()[1]

    def run(statement: CallProcedure, keys: Mapping[str, str]) -> Performed:
        own = copy(services)
        own.query = replace(services.query, summary={**services.query.summary, **keys})
        done = run_call(statement, own)
        answer = done.answer
        assert answer is not None
        with closing(answer):
            names = [each.name for each in answer.columns]
            rows = [dict(zip(names, row, strict=True)) for row in answer.fetch(None)]
        return Performed(rows, (done.note,) if done.note else (), done.snapshot_id)

    return Door(load, run, lambda: services.query)
