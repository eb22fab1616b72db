"""The demo: a small warehouse with a history, and a look into its past."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import icesql
from icesql.errors import ProgrammingError
from icesql.repl.render import Style, write_rows
from icesql.repl.terminal import Writer
from icesql.scan.report import bytes_text

if TYPE_CHECKING:
    from icesql.dbapi.connection import Connection
    from icesql.dbapi.cursor import Cursor
    from icesql.scan.report import ScanReport

_TRIPS_PER_DAY: Final = 200
_TIP: Final = ", nullif(number % 6, 0) * 0.5"

_QUERY: Final = """\
SELECT city, count(*) AS trips, sum(fare) AS fares
FROM demo.trips VERSION AS OF 'two-weeks'
WHERE pickup_at >= DATE '2026-01-08' AND pickup_at < DATE '2026-01-10'
GROUP BY city
ORDER BY city"""


def run_demo(directory: str | Path | None, out: Writer) -> None:
    """Build the demo warehouse in ``directory`` (``./icesql-demo``), query its past, print both.

    A folder that already holds the demo is queried as it is. Raises ProgrammingError for a folder
    with anything else in it, and whatever the query raises.
    """
    folder = Path(directory or "icesql-demo").expanduser().resolve()
    if (folder / "catalog.db").is_file():
        print(f"The demo warehouse is already in {folder}.", file=out)
    elif folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ProgrammingError(f"{folder} is not empty; name a new folder: icesql demo DIR")
    else:
        build(folder)
        print(f"A new warehouse is in {folder}.", file=out)
    with icesql.connect(uri=f"sqlite:///{folder / 'catalog.db'}") as connection:
        print("\ndemo.trips, partitioned by day(pickup_at), has this history:\n", file=out)
        with connection.execute("SHOW SNAPSHOTS FROM demo.trips") as cursor:
            _write(cursor, out)
        print(f"\nTime travel, with a filter that needs two of its days:\n\n{_QUERY}\n", file=out)
        with connection.execute(_QUERY) as cursor:
            _write(cursor, out)
            for report in cursor.scan_reports:
                print(f"\n{_saved(connection, report)}", file=out)
        _show_undo(connection, out)
    print(_next_steps(folder), file=out)


def build(folder: Path) -> None:
    """Write the warehouse: demo.trips with its snapshots, branch and tag, in ``catalog.db``.

    The rows are the same each time; only ids and times of snapshots differ.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with icesql.connect(
        "icesql",
        uri=f"sqlite:///{folder / 'catalog.db'}",
        warehouse=folder,
        properties={"init_catalog_tables": "true"},
    ) as connection:
        for statement in (
            "CREATE SCHEMA demo",
            "CREATE TABLE demo.trips (id BIGINT NOT NULL, pickup_at TIMESTAMPTZ NOT NULL, "
            "city VARCHAR, distance_km DECIMAL(6, 2), fare DECIMAL(8, 2)) "
            "PARTITIONED BY (day(pickup_at))",
            _new_trips(range(7)),
            _new_trips(range(7, 14)),
            'ALTER TABLE demo.trips CREATE TAG "two-weeks"',
            # The fares of 9 January were recorded without tax.
            "UPDATE demo.trips SET fare = CAST(fare * 1.19 AS DECIMAL(8, 2)) "
            "WHERE pickup_at >= DATE '2026-01-09' AND pickup_at < DATE '2026-01-10'",
            "DELETE FROM demo.trips WHERE pickup_at < DATE '2026-01-02'",
            "ALTER TABLE demo.trips ADD COLUMN tip DECIMAL(8, 2) COMMENT 'since the third week'",
            _new_trips(range(14, 21), more=_TIP),
            "ALTER TABLE demo.trips CREATE BRANCH audit AS OF VERSION 'two-weeks'",
            _new_trips(range(21, 22), at="VERSION AS OF 'audit'", more=_TIP),
        ):
            connection.execute(statement).close()


def _new_trips(days: range, *, at: str = "", more: str = "") -> str:
    """The INSERT of the trips of some days: arithmetic, not chance, so always the same."""
    return f"""\
INSERT INTO demo.trips {at}
SELECT number, TIMESTAMPTZ '2026-01-01 00:00:00 UTC' + number * INTERVAL 432 SECONDS,
  ['Athens', 'Berlin', 'Cairo', 'Delhi', 'Essen'][(number + number // 7) % 5 + 1],
  distance, 3 + 2 * distance{more}
FROM (SELECT number, (50 + number * 7919 % 2450) * 0.01 AS distance
  FROM range({days.start * _TRIPS_PER_DAY}, {days.stop * _TRIPS_PER_DAY}) AS trips(number))
ORDER BY number"""


def _show_undo(connection: Connection, out: Writer) -> None:
    """Show a mistaken write, the state before it, and its undo."""
    history = "SELECT snapshot_id FROM demo.trips.refs WHERE name = 'main'"
    ((before,),) = connection.execute(history).fetchall()
    print("\nA mistake, a look at what was there before, and the undo:", file=out)
    for statement in (
        "DELETE FROM demo.trips WHERE city = 'Cairo'",
        "SELECT count(*) AS left, (SELECT count(*) FROM demo.trips VERSION AS OF -1) AS before "
        "FROM demo.trips",
        f"CALL system.rollback_to_snapshot('demo.trips', {before})",
    ):
        print(f"\n{statement}\n", file=out)
        with connection.execute(statement) as cursor:
            if cursor.description:
                _write(cursor, out)
            elif cursor.message:
                print(cursor.message, file=out)


def _write(cursor: Cursor, out: Writer) -> None:
    columns = [str(column[0]) for column in cursor.description or ()]
    write_rows(out, "table", columns, cursor, Style())


def _saved(connection: Connection, report: ScanReport) -> str:
    """The snapshot that was read, and the share of it that was skipped."""
    assert connection.catalog is not None
    assert report.snapshot_id is not None
    snapshot = connection.catalog.load(("demo", "trips")).metadata.snapshot(report.snapshot_id)
    assert snapshot is not None
    committed = datetime.fromtimestamp(snapshot.timestamp_ms / 1000, UTC)
    files = int(snapshot.summary["total-data-files"])
    size = int(snapshot.summary["total-files-size"])
    skipped, manifests = report.skipped_data_manifests, report.total_data_manifests
    return (
        f"Read at snapshot {report.snapshot_id} ({report.ref}), committed "
        f"{committed:%Y-%m-%d %H:%M:%S} UTC.\n"
        f"Pruning saved: {skipped} of {manifests} manifests "
        f"and {files - report.distinct_data_files} of {files} data files were never opened;\n"
        f"{bytes_text(report.projected_bytes)} of {bytes_text(size)} had to be read."
    )


def _next_steps(folder: Path) -> str:
    place = str(folder) if not any(sign in str(folder) for sign in " '\"$") else f'"{folder}"'
    start = f"icesql --warehouse {place}"
    return f"""
Go on from here:
  {start} -c "SELECT count(*), min(pickup_at) FROM demo.trips"
  {start} -c "SELECT count(*), min(pickup_at) FROM demo.trips VERSION AS OF 'two-weeks'"
  {start} -c "SELECT max(pickup_at) FROM demo.trips FOR VERSION AS OF 'audit'"
  {start} -c "EXPLAIN SELECT * FROM demo.trips WHERE pickup_at < DATE '2026-01-03'"
  {start}"""
