"""Compare icesql's metadata tables with those of Iceberg's Java library, row by row.

Run twice, since the Java side needs a PySpark and an Iceberg runtime that match each other:

    python java_metadata_tables.py dump --jars iceberg-spark-runtime-4.1_2.13-1.12.0.jar:sqlite-jdbc.jar \\
        --out java.jsonl METADATA.json …     # with PySpark 4.1; tables lie where their metadata says
    python java_metadata_tables.py compare java.jsonl               # with icesql

``compare`` prints each column that differs and exits with 1 if any does. What Java said of some
tables is kept beside the default tests, with the metadata of these tables:

    python java_metadata_tables.py record java.jsonl tests/scan/java_metadata_tables.tar.xz METADATA.json …
"""

from __future__ import annotations

import argparse
import datetime as dt
import io
import json
import sys
import tarfile
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

TABLES = (
    "history", "snapshots", "refs", "metadata_log_entries", "manifests", "all_manifests",
    "files", "data_files", "delete_files", "all_files", "all_data_files", "all_delete_files",
    "entries", "all_entries", "partitions", "position_deletes",
)  # fmt: skip


def canonical(value: Any) -> Any:
    """A value in a JSON form that both sides share; maps and structs by sorted keys."""
    match value:
        case dict():
            return {str(key): canonical(item) for key, item in sorted(value.items(), key=str)}
        case list() | tuple():
            return [canonical(item) for item in value]
        case bytes() | bytearray():
            return bytes(value).hex()
        case dt.datetime():
            if value.tzinfo is None:
                return value.isoformat(timespec="microseconds")
            return value.astimezone(dt.UTC).replace(tzinfo=None).isoformat(timespec="microseconds")
        case float():
            return repr(value)
        case None | bool() | int() | str():
            return value
        case _:
            return str(value)


def dump(jars: str, metadata_files: list[str]) -> Iterator[dict[str, Any]]:
    """The rows that Java gives, by table; one dict for each metadata file and metadata table."""
    from tests.campaigns.java_session import java_session

    spark = java_session(jars, "/tmp", ":memory:", name="x")
    spark.sql("CREATE NAMESPACE x.n")
    for number, path in enumerate(metadata_files):
        spark.sql(f"CALL x.system.register_table('x.n.t{number}', '{path}')")
        for name in TABLES:
            found: dict[str, Any] = {"metadata": path, "table": name}
            try:
                frame = spark.sql(f"SELECT * FROM x.n.t{number}.{name}")
                found["columns"] = frame.columns
                found["rows"] = [
                    canonical(row.asDict(recursive=True)) for row in frame.toLocalIterator()
                ]
            except Exception as error:
                found["error"] = str(error)[:300]
            yield found


def record(dumped: list[dict[str, Any]], out: str, metadata_files: list[str]) -> None:
    """Keep what Java gave for some tables, with their metadata folders, in one archive."""
    with tarfile.open(out, "w:xz") as archive:
        for path in metadata_files:
            folder = Path(path).parent
            archive.add(folder, f"{folder.parent.name}/metadata")
        kept = [
            # Rows of position deletes are read from delete files, which are not kept.
            each | {"at": "/".join(Path(each["metadata"]).parts[-3:])}
            for each in dumped
            if each["metadata"] in metadata_files and each["table"] != "position_deletes"
        ]
        data = json.dumps(kept).encode()
        entry = tarfile.TarInfo("java.json")
        entry.size = len(data)
        archive.addfile(entry, io.BytesIO(data))


def compare(dumped: list[dict[str, Any]]) -> int:
    """How many metadata tables differ. ``at`` is where a metadata file is now, if it was moved."""
    import icesql

    wrong, counts = 0, Counter[str]()
    for metadata, found in groupby(dumped, key=lambda each: each["metadata"]):
        with icesql.connect() as connection:
            for each in found:
                connection.register_table("t", each.get("at", metadata))
                said, problems = _compared(connection, each)
                counts[said] += 1
                wrong += bool(problems)
                for problem in problems:
                    print(f"{metadata} {each['table']}: {problem}")
    print(dict(counts))
    return wrong


def _compared(connection: Any, each: dict[str, Any]) -> tuple[str, list[str]]:
    """How both sides fare with one metadata table, and what differs."""
    import icesql

    try:
        cursor = connection.execute(f"SELECT * FROM t.{each['table']}")
        rows = cursor.arrow().to_pylist(maps_as_pydicts="strict")
        names = [column[0] for column in cursor.description or ()]
    except icesql.Error as error:
        return ("both refuse", []) if "error" in each else ("icesql refuses", [str(error)])
    if "error" in each:
        return "only Java refuses", []
    ours = [canonical(row) for row in rows]
    if "at" in each:
        # The log ends with the file that was opened.
        text = json.dumps(ours).replace(json.dumps(each["at"]), json.dumps(each["metadata"]))
        ours = json.loads(text)
    problems = list(_differences(each, names, ours))
    return ("differ" if problems else "the same"), problems


def _differences(java: dict[str, Any], names: list[str], rows: list[Any]) -> Iterator[str]:
    if java["columns"] != names:
        yield f"columns {names}, Java has {java['columns']}"
    if len(java["rows"]) != len(rows):
        yield f"{len(rows)} rows, Java has {len(java['rows'])}"
        return
    theirs = sorted(java["rows"], key=lambda row: json.dumps(row, sort_keys=True))
    ours = sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))
    for column in java["columns"]:
        for one, other in zip(theirs, ours, strict=True):
            if one[column] != other.get(column):
                yield f"{column}: {other.get(column)!r}, Java has {one[column]!r}"[:400]
                break


def main() -> int:
    """Run one of the two halves; see the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    dumping = commands.add_parser("dump")
    dumping.add_argument("--jars", required=True, help="Iceberg's runtime and sqlite-jdbc, by :")
    dumping.add_argument("--out", required=True)
    dumping.add_argument("metadata", nargs="+")
    comparing = commands.add_parser("compare")
    comparing.add_argument("dump")
    recording = commands.add_parser("record")
    recording.add_argument("dump")
    recording.add_argument("out")
    recording.add_argument("metadata", nargs="+")
    given = parser.parse_args()
    if given.command == "dump":
        with open(given.out, "w", encoding="utf-8") as file:
            for found in dump(given.jars, given.metadata):
                print(json.dumps(found), file=file, flush=True)
        return 0
    with open(given.dump, encoding="utf-8") as file:
        dumped = [json.loads(line) for line in file]
    if given.command == "record":
        record(dumped, given.out, given.metadata)
        return 0
    return 1 if compare(dumped) else 0


if __name__ == "__main__":
    sys.exit(main())
