"""fast_forward: move a branch to the head of a later one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icesql.modify.procedures.procedure import TABLE, Plan, Rows, Step, procedure, required

if TYPE_CHECKING:
    from icesql.modify.procedures.call import Call


@procedure(
    "moves a branch to the head of another one that it led to",
    TABLE,
    required("branch", "string"),
    required("to", "string"),
    rows="branch_updated varchar, previous_ref bigint, updated_ref bigint",
)
def fast_forward(call: Call) -> Plan:
    """Move a branch to the head of another one, of which it is an ancestor."""
    from icesql.commit import refs
    from icesql.modify.procedures.refs import changed, from_to, nothing_to_do

    catalog, table = call.target()
    branch, to = call["branch"], call["to"]
    make = refs.fast_forward(branch, to)
    make(table.metadata)
    before, after = (refs.head_of(table.metadata, each) for each in (branch, to))
    step = Step("set", "branch", branch, from_to(before, after, f", the head of {to}"))

    def run() -> Rows:
        seen, done = changed(call, catalog, table, make)
        return Rows([(branch, *(refs.head_of(each, branch) for each in (seen, done.metadata)))])

    return Plan([step] if before != after else [], run, nothing_to_do(before == after))
