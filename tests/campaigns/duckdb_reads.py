"""DuckDB's Iceberg extension reads the tables that icesql wrote in ``twin_histories.py``.

    python duckdb_reads.py tell FOLDER     # with icesql: their rows and metadata files
    python duckdb_reads.py check FOLDER    # with DuckDB 1.5 and duckdb-extension-iceberg, -avro

The second run prints what differs and exits with 1 if anything does.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


def plain(value: Any) -> Any:
    """A value as JSON has it; floats and times by their text, empty maps as empty lists."""
    match value:
        case datetime():
            return value.astimezone(UTC).isoformat() if value.tzinfo else value.isoformat()
        case float():
            return repr(value)
        case dict():
            return {str(key): plain(each) for key, each in value.items()} or []
        case list() if value and all(isinstance(each, tuple) for each in value):
            return plain(dict(value))  # pairs of a map
        case list() | tuple():
            return [plain(each) for each in value]
        case bool() | int() | str() | None:
            return value
    return str(value)


def tell(folder: Path) -> int:
    sys.path.insert(0, str(Path(__file__).parents[2]))
    import icesql

    told = {}
    with icesql.connect(
        "c", uri=f"sqlite:///{folder}/c.db", warehouse=str(folder / "wh"), dialect="spark"
    ) as connection:
        for name in sorted(
            row[0].rpartition(".")[2]
            for row in connection.execute("SHOW TABLES FROM ns").fetchall()
        ):
            if not name.startswith("own_"):
                continue
            (metadata,) = connection.execute(
                f"SELECT file FROM ns.{name}.metadata_log_entries ORDER BY timestamp DESC LIMIT 1"
            ).fetchone()
            cursor = connection.execute(f"SELECT * FROM ns.{name}")
            rows = [plain(row) for row in cursor.fetchall()]
            told[name] = {"metadata": metadata, "rows": rows}
    (folder / "duckdb.json").write_text(json.dumps(told))
    print(f"{len(told)} tables")
    return 0


def check(folder: Path) -> int:
    import duckdb

    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    site = Path(duckdb.__file__).parents[1]
    for name in ("avro", "iceberg"):
        (path,) = site.glob(f"duckdb_extension_{name}/**/*.duckdb_extension")
        connection.execute(f"LOAD '{path}'")
    connection.execute("SET TimeZone = 'UTC'")
    wrong = refused = 0
    told = json.loads((folder / "duckdb.json").read_text())
    for name, each in told.items():
        try:
            found = connection.execute(f"SELECT * FROM iceberg_scan('{each['metadata']}')")
            rows = [json.loads(json.dumps(plain(row))) for row in found.fetchall()]
        except Exception as error:
            refused += 1
            print(f"{name} refused: {' '.join(str(error).split())[:200]}")
            continue
        lost = Counter(map(repr, each["rows"])) - Counter(map(repr, rows))
        extra = Counter(map(repr, rows)) - Counter(map(repr, each["rows"]))
        if lost or extra:
            wrong += 1
            print(f"{name}: lost {[*lost][:2]}, extra {[*extra][:2]}")
    print(f"{len(told)} tables, {wrong} wrong, {refused} that DuckDB refuses")
    return int(wrong > 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", choices=("tell", "check"))
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    return (tell if given.run == "tell" else check)(given.folder)


if __name__ == "__main__":
    raise SystemExit(main())
