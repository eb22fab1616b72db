"""The doctor's round over tables that others wrote, and its advice followed on copies of them.

    python tests/campaigns/doctor_advice.py CORPUS… [--only TEXT] [--scratch FOLDER]

A corpus is a folder with a ``tables.jsonl``. Each table is examined as it lies, in all forms. Then
it is copied, each statement is run by icesql on a fresh copy, and the measure is taken again from
the metadata, without the doctor's own code. The rows must be the same before and after. Says how
many findings of each kind there were, and ends with code 1 if one did not hold.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import icesql
from icesql.context import QueryContext
from icesql.doctor.bounds import share_read
from icesql.doctor.finding import Finding
from icesql.doctor.live_files import live_files
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE
from icesql.scan.planner import plan
from icesql.scan.table_scan import TableScan

NEAR = 0.1
SAME_ROWS = "SELECT count(*), bit_xor(hash(t::VARCHAR)) FROM {table} t"


def tables(corpora: list[Path]) -> Iterator[tuple[str, str, Path]]:
    """(name, usability, metadata file) of each table."""
    for corpus in corpora:
        for line in (corpus / "tables.jsonl").read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if "metadata" in row:
                place = corpus / row["metadata"]
            else:
                place = max(
                    (corpus / row["table"] / "metadata").glob("*.metadata.json"),
                    key=lambda path: path.name,
                )
            yield row["table"], row["usability"], place


class Balanced(HTMLParser):
    """Refuses HTML whose tags do not close."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, tag


def check_forms(connection: Any, found: Any) -> None:
    """All three forms can be read, and their numbers make sense."""
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    parser = Balanced()
    parser.feed(found._repr_html_())
    assert not parser.open, parser.open
    assert len(str(found).splitlines()) >= 1
    assert len(told["findings"]) == len(found.findings)
    for each in found.findings:
        assert (each.now is None) == (not each.measure), each
        if each.after is not None:
            assert each.now is not None
            assert 0 <= each.after < each.now, each
            if each.measure.startswith("share"):
                assert each.now <= 1, each


def copied(metadata: Path, folder: Path) -> Path:
    """A writable warehouse with a copy of the table, which is called ``ns.t`` there."""
    source = metadata.parent.parent if metadata.parent.name == "metadata" else metadata.parent
    shutil.rmtree(folder, ignore_errors=True)
    target = folder / "ns" / "t"
    shutil.copytree(
        source, target, ignore=lambda at, names: [n for n in names if n.endswith(".crc")]
    )
    copy = target / metadata.relative_to(source)
    import gzip

    zipped = copy.name.endswith(".gz.metadata.json")
    text = gzip.decompress(copy.read_bytes()) if zipped else copy.read_bytes()
    document = json.loads(text)
    document["location"] = str(target)
    copy.unlink()
    made = target / "metadata" / "v90000.metadata.json"
    made.parent.mkdir(exist_ok=True)
    made.write_text(json.dumps(document), encoding="utf-8")
    for each in made.parent.glob("version-hint*"):
        each.unlink()
    return folder


def measured(connection: Any, finding: Finding) -> float:
    """The measure of a finding, from metadata tables."""

    def number(sql: str) -> float:
        return float(connection.execute(sql).fetchone()[0])

    match finding.measure:
        case "data files":
            return number("SELECT count(*) FROM ns.t.data_files")
        case "data files with deletes":
            table = connection.catalog.load(("ns", "t"))
            scan = TableScan(table, table.metadata.current_snapshot, table.metadata.schema,
                             table.metadata.schema, ALWAYS_TRUE)  # fmt: skip
            return sum(bool(each.deletes) for each in plan(scan, QueryContext()).files)
        case "manifests of a partition":
            rows = connection.execute(
                "SELECT count(*) FROM (SELECT DISTINCT partition FROM ns.t.partitions)"
            ).fetchone()
            table = connection.catalog.load(("ns", "t"))
            return sum(live_files(table, [], QueryContext()).spread) / rows[0]
        case "manifests":
            return number("SELECT count(*) FROM ns.t.manifests")
        case "snapshots":
            return number("SELECT count(*) FROM ns.t.snapshots")
        case "metadata files in the log":
            return number("SELECT count(*) FROM ns.t.metadata_log_entries")
        case "orphan files":
            rows = connection.execute(
                "CALL system.remove_orphan_files(table => 'ns.t', dry_run => true)"
            ).fetchall()
            return len(rows)
        case other if other.startswith("share of files read by a lookup of "):
            column = other.removeprefix("share of files read by a lookup of ")
            table = connection.catalog.load(("ns", "t"))
            return share_read(live_files(table, [column], QueryContext()), column) or 0.0
        case other if other.startswith(("files without bounds of ", "files without a NaN count")):
            left = [each for each in connection.doctor("ns.t").findings if each.measure == other]
            return left[0].now if left else 0
    raise AssertionError(f"unknown measure {finding.measure}")


def follow(metadata: Path, folder: Path, number: int) -> tuple[str, str]:
    """What came of the statement of finding ``number``: (verdict, text)."""
    copied(metadata, folder)
    with icesql.connect(warehouse=str(folder), read_only=False) as connection:
        finding = connection.doctor("ns.t").findings[number]
        if not finding.statement:
            return "advice only", ""
        if finding.after is not None:
            before = measured(connection, finding)
            assert before == finding.now or abs(before - finding.now) < 1e-9, (before, finding)
        rows = connection.execute(SAME_ROWS.format(table="ns.t")).fetchone()
        for cursor in connection.execute_script(finding.statement):
            cursor.fetchall() if cursor.description else None
        assert connection.execute(SAME_ROWS.format(table="ns.t")).fetchone() == rows, "other rows"
        if finding.after is None:
            return "no promise", ""
        after = measured(connection, finding)
        if abs(after - finding.after) > NEAR * max(finding.now, 1e-9):
            return "broken", f"promised {finding.now} -> {finding.after}, is {after}"
        again = [
            each.name
            for each in connection.doctor("ns.t").findings
            if each.measure == finding.measure
        ]
        return ("kept", "") if not again else ("kept, told again", str(again))


def main() -> int:
    """Exit code 1 if a table could not be examined or a promise was not kept."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("corpora", type=Path, nargs="+")
    arguments.add_argument("--only", default="")
    arguments.add_argument("--scratch", type=Path)
    given = arguments.parse_args()
    counts, wrong, started = Counter[str](), 0, time.perf_counter()
    with tempfile.TemporaryDirectory(dir=given.scratch) as scratch:
        for name, usability, metadata in tables(given.corpora):
            if given.only not in name:
                continue
            step = "examine"
            try:
                with icesql.connect() as connection:
                    connection.register_table("t", str(metadata))
                    found = connection.doctor("t")
                    check_forms(connection, found)
                counts[f"tables, {usability}"] += 1
                for each in found.findings:
                    counts[f"found: {each.name}"] += 1
                if usability != "full":
                    continue
                step = "copy"
                folder = copied(metadata, Path(scratch) / "w")
                with icesql.connect(warehouse=str(folder), read_only=False) as connection:
                    count = len(connection.doctor("ns.t").findings)
                for number in range(count):
                    step = f"follow {number}"
                    verdict, text = follow(metadata, folder, number)
                    counts[f"followed: {verdict}"] += 1
                    if text:
                        print(f"{name}: {verdict}: {text}")
                    wrong += verdict == "broken"
            except icesql.StorageError:
                if usability == "full":
                    raise
                counts["tables whose files are not there, refused"] += 1
            except Exception as error:
                wrong += 1
                counts[f"failed to {step.split()[0]}"] += 1
                last = traceback.extract_tb(error.__traceback__)[-1]
                print(
                    f"{name}: {step}: {type(error).__name__}: {str(error)[:300]} ({last.filename}:{last.lineno})",
                    flush=True,
                )
    for what, count in sorted(counts.items()):
        print(f"{count:5} {what}")
    print(f"{time.perf_counter() - started:.0f} s, {wrong} wrong")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
