"""DuckDB with its iceberg extension, which PyPI has as a package of its own."""

from __future__ import annotations

from protocol import Question, select


def answer(question: Question) -> list[tuple]:
    import duckdb
    import duckdb_extensions

    # A database of its own for each question: an internal error ends all that share one.
    with duckdb.connect() as connection:
        for name in ("avro", "httpfs", "iceberg"):
            duckdb_extensions.import_extension(name, con=connection)
            connection.execute(f"LOAD {name}")
        connection.execute("SET TimeZone = 'UTC'")
        place = question["metadata"].replace("'", "''")
        snapshot = question["snapshot_id"]
        travel = "" if snapshot is None else f", snapshot_from_id => {snapshot}"
        relation = f"iceberg_scan('{place}'{travel})"
        return connection.execute(select(question, relation)).fetchall()
