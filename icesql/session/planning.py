"""From the scans of a bound query to what is read, within the limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icesql.engine.engines import EngineChoice, choose_engine
from icesql.errors import ScanLimitError, UnsupportedSqlError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from icesql.context import QueryContext
    from icesql.query.bound import BoundQuery, KeyEdge
    from icesql.scan.plan import ScanPlan
    from icesql.scan.table_scan import TableScan
    from icesql.session.prepared import PreparedStatement, PreparedStatements
    from icesql.sql.statement import Explain


def plans_to_read(
    bound: BoundQuery,
    query: QueryContext,
    statements: PreparedStatements,
    prepared: PreparedStatement | None,
) -> tuple[list[ScanPlan], tuple[str, ...]]:
    """The plan of each scan, and notes on what was verified.

    A prepared query may still have its plans. Raises ScanLimitError, and where ``verify`` is full
    what verifying raises.
    """
    from icesql.scan.limits import check_limits

    plans = statements.plan(prepared, bound.scans, query)
    edges = edges_of(bound, plans)
    check_limits(plans, query.settings, [each.source for each in edges])
    notes: tuple[str, ...] = ()
    if any(each.repeated for each in plans):
        from icesql.scan.repeated_files import repeated_note

        notes = tuple(repeated_note(each) for each in plans if each.repeated)
    if query.settings.verify == "full":
        from icesql.read.verification import verify

        notes += verify(plans, query)
    return narrowed(edges, plans, query), notes


def edges_of(bound: BoundQuery, plans: Sequence[ScanPlan]) -> tuple[KeyEdge, ...]:
    """Which scans are read first, for keys that limit others."""
    if not bound.edges:
        return ()
    from icesql.engine.run_time.narrowing import expected

    return expected(bound, plans)


def narrowed(
    edges: tuple[KeyEdge, ...], plans: list[ScanPlan], query: QueryContext
) -> list[ScanPlan]:
    """The plans after what is small was read and its keys limit the others."""
    if not edges:
        return plans
    from icesql.engine.run_time.narrowing import narrowed as narrow
    from icesql.scan.limits import check_limits

    found = [*narrow(edges, plans, query)]
    check_limits(found, query.settings)
    return found


def limit_notes(
    plans: list[ScanPlan], edges: tuple[KeyEdge, ...], explain: Explain, query: QueryContext
) -> tuple[str, ...]:
    """Notes of EXPLAIN on limits that the query exceeds. Raises ScanLimitError if it runs."""
    from icesql.scan.limits import check_limits

    try:
        check_limits(plans, query.settings, [each.source for each in edges])
    except ScanLimitError as error:
        if explain.analyze or explain.format == "engine":
            raise
        return (f"not allowed to run: {error}",)
    if not edges or explain.analyze:
        return ()
    try:
        check_limits(plans, query.settings)
    except ScanLimitError as error:
        return (f"allowed to run only if run-time filters leave out files: {error}",)
    return ()


def send_reports(scans: Sequence[TableScan], plans: Sequence[ScanPlan]) -> None:
    """Send scan reports to the catalogs that want them."""
    for scan, each in zip(scans, plans, strict=True):
        if scan.table.reports is not None and each.report.snapshot_id is not None:
            scan.table.reports.send(each.report.to_dict())


def engine_of(bound: BoundQuery, plans: Sequence[ScanPlan], query: QueryContext) -> EngineChoice:
    """Where the query runs. Raises UnsupportedSqlError for what only the local engine has."""
    if not bound.about:
        return choose_engine(plans, query.settings)
    if bound.about == "SUMMARIZE" and query.settings.engine == "spark":
        raise UnsupportedSqlError("SUMMARIZE on the Spark engine", hint="SET engine = local")
    return EngineChoice("local")
