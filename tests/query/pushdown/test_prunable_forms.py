"""Common forms of WHERE, and the files that each of them prunes: none may prune less.

Each line of ``prunable_forms.tsv`` has the number of 8 files that a form reads, the number of 8
manifests that it opens if the table is partitioned, its row filter (one for each scan), and the
form: a condition, or a whole statement over ``{t}``. `pytest --update-golden` rewrites the rest of
the line, and people read the diff. Every form returns the same rows with ``prune`` off.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time, tzinfo
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

import icesql
from icesql.iceberg.transforms import bucket_hash
from icesql.iceberg.types import INTEGER
from icesql.scan.report import ScanReport
from tests.tables import read_table
from tests.writer.fields import fields, spec
from tests.writer.table import TableWriter

TABLE = Path(__file__).with_name("prunable_forms.tsv")
TODAY = datetime(2026, 11, 21, 12, tzinfo=UTC)
FILES, ROWS = 8, 20
_MONTHS = range(1, FILES + 1)

FIELDS = fields(
    "id long, n int, mon int, yr int, dec decimal(10, 2), f double, r float, b boolean, s string, "
    "ds string, d date, ts timestamp, tstz timestamptz, tm time, u uuid, bin binary, "
    "st struct<a long, t string, deep struct<x int>>, l list<long>"
)


def _row(month: int, number: int) -> dict[str, Any]:
    id_ = (month - 1) * ROWS + number
    day = date(2026, month, number)
    text = chr(ord("a") + month - 1) + chr(ord("a") + number - 1)
    moment = datetime(2026, month, number, 10, number)
    return {
        "id": id_,
        "n": None if month == FILES or (month == 2 and number > 10) else id_ * 5,
        "mon": month,
        "yr": 2026,
        "dec": Decimal(id_) + Decimal("0.25"),
        "f": float("nan") if (month, number) == (7, 7) else id_ + 0.5,
        "r": id_ + 0.5,
        "b": month % 2 == 0,
        "s": text,
        "ds": day.isoformat(),
        "d": day,
        "ts": moment,
        "tstz": moment.replace(tzinfo=UTC),
        "tm": time(month, number - 1),
        "u": UUID(int=id_).bytes,
        "bin": bytes([id_]),
        "st": {"a": id_, "t": text, "deep": {"x": id_}},
        "l": [id_, 0],
    }


# Each partition has one month, so each has one value of every field.
_SPEC = spec(
    "12 month ts_month, 13 month tstz_month, 11 month d_month, 3 identity mon, 9 truncate[1] s_1, 10 truncate[7] ds_7, 4 bucket[16] yr_16, 2 void n"
)


def _partition(month: int) -> tuple[Any, ...]:
    first = _row(month, 1)
    since = 56 * 12 + month - 1
    bucket = (bucket_hash(first["yr"], INTEGER) & 0x7FFFFFFF) % 16
    return since, since, since, month, first["s"][:1], first["ds"][:7], bucket, None


class _Clock(datetime):
    """A datetime whose now() is ``TODAY``."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:
        return TODAY.astimezone(tz)


@pytest.fixture(scope="module")
def connection(tmp_path_factory) -> Iterator[icesql.Connection]:
    """``t``: a file for each month of 2026 up to August, 20 days each, with all bounds.

    ``p``: the same rows, partitioned, each file in its own manifest.
    """
    folder = tmp_path_factory.mktemp("forms")
    months = [[_row(month, number) for number in range(1, ROWS + 1)] for month in _MONTHS]
    writer = TableWriter(folder / "t", FIELDS)
    writer.commit([writer.data_file(rows) for rows in months])
    partitioned = TableWriter(folder / "p", FIELDS, spec=_SPEC)
    for month, rows in zip(_MONTHS, months, strict=True):
        added = [partitioned.data_file(rows, partition=_partition(month))]
        partitioned.commit(added, rewrite=False)
    with pytest.MonkeyPatch.context() as patch, icesql.connect(timezone="UTC") as opened:
        patch.setattr("icesql.context.datetime", _Clock)
        opened.register_table("t", writer.metadata_path)
        opened.register_table("p", partitioned.metadata_path)
        yield opened


def _statement(form: str, table: str) -> str:
    whole = form.split(maxsplit=1)[0] in ("SELECT", "WITH", "FROM", "VALUES")
    return (form if whole else f"SELECT id FROM {{t}} WHERE {form}").replace("{t}", table)


def _run(
    connection: icesql.Connection, form: str, table: str = "t", prune: str = "on"
) -> tuple[list[Any], Sequence[ScanReport]]:
    connection.execute(f"SET prune = {prune}")
    cursor = connection.execute(_statement(form, table))
    return sorted(cursor.fetchall(), key=repr), cursor.scan_reports


def _lines() -> list[list[str]]:
    return read_table(__file__, TABLE.name)


def _pruned(connection: icesql.Connection, form: str) -> list[str]:
    """The current line of a form."""
    rows, reports = _run(connection, form)
    same, partitioned = _run(connection, form, "p")
    assert same == rows == _run(connection, form, prune="off")[0], form
    files = sum(each.result_data_files for each in reports)
    manifests = sum(each.scanned_data_manifests for each in partitioned)
    return [str(files), str(manifests), "; ".join(each.filter for each in reports), form]


def test_no_form_prunes_less_or_gives_other_rows(
    connection: icesql.Connection, update_golden: bool
) -> None:
    lines = _lines()
    found = [_pruned(connection, line[-1]) for line in lines]
    if update_golden:
        TABLE.write_text("".join("\t".join(each) + "\n" for each in found), encoding="utf-8")
    changed = [
        f"{now[:3]} instead of {was[:3]}: {was[-1]}"
        for was, now in zip(lines, found, strict=True)
        if now != was
    ]
    assert not changed, "\n".join(changed)
    assert len(lines) > 500
