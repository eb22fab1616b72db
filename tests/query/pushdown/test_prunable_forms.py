"""What people write in WHERE, and how many of 8 files each form reads: none may read more.

``prunable_forms.tsv`` holds a number of files and a condition, or a whole statement over ``{t}``,
in each line; `pytest --update-golden` rewrites the numbers, and people read the diff. Every form
gives the same rows with ``prune`` off.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, tzinfo
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

import icesql
from tests.writer.table import TableWriter

TABLE = Path(__file__).with_name("prunable_forms.tsv")
TODAY = datetime(2026, 11, 21, 12, tzinfo=UTC)
FILES, ROWS = 8, 20

_PLAIN = {
    "id": "long", "n": "int", "mon": "int", "yr": "int", "dec": "decimal(10, 2)", "f": "double",
    "r": "float", "b": "boolean", "s": "string", "ds": "string", "d": "date", "ts": "timestamp",
    "tstz": "timestamptz", "tm": "time", "u": "uuid", "bin": "binary",
}  # fmt: skip


def _field(number: int, name: str, kind: Any) -> dict[str, Any]:
    return {"id": number, "name": name, "required": False, "type": kind}


def _struct(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


FIELDS = [
    *(_field(number, name, kind) for number, (name, kind) in enumerate(_PLAIN.items(), start=1)),
    _field(
        30,
        "st",
        _struct(
            _field(31, "a", "long"),
            _field(32, "t", "string"),
            _field(33, "deep", _struct(_field(34, "x", "int"))),
        ),
    ),
    _field(
        40, "l", {"type": "list", "element-id": 41, "element": "long", "element-required": False}
    ),
]


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


class _Clock(datetime):
    """Its now is ``TODAY``."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:
        return TODAY.astimezone(tz)


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[icesql.Connection]:
    """``t``: a file for each month of 2026 up to August, 20 days each, with all bounds."""
    writer = TableWriter(tmp_path_factory.mktemp("forms") / "t", FIELDS)
    writer.commit(
        [
            writer.data_file([_row(month, number) for number in range(1, ROWS + 1)])
            for month in range(1, FILES + 1)
        ]
    )
    with pytest.MonkeyPatch.context() as patch, icesql.connect(timezone="UTC") as opened:
        patch.setattr("icesql.context.datetime", _Clock)
        opened.register_table("t", writer.metadata_path)
        yield opened


def _statement(form: str) -> str:
    whole = form.split(maxsplit=1)[0] in ("SELECT", "WITH", "FROM", "VALUES")
    return (
        form.replace("{t}", "t") if whole else f"SELECT id FROM t WHERE {form}".replace("{t}", "t")
    )


def _run(connection: icesql.Connection, form: str, prune: str) -> tuple[list[Any], int]:
    connection.execute(f"SET prune = {prune}")
    cursor = connection.execute(_statement(form))
    rows = sorted(cursor.fetchall(), key=repr)
    return rows, sum(report.result_data_files for report in cursor.scan_reports)


def _lines() -> list[tuple[int, str]]:
    found = []
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        files, form = line.split("\t")
        found.append((int(files), form))
    return found


def test_no_form_reads_more_files_or_gives_other_rows(
    connection: icesql.Connection, update_golden: bool
) -> None:
    lines, found, differ = _lines(), [], []
    for _, form in lines:
        rows, files = _run(connection, form, "on")
        found.append((files, form))
        if rows != _run(connection, form, "off")[0]:
            differ.append(form)
    assert not differ
    if update_golden:
        TABLE.write_text("".join(f"{n}\t{form}\n" for n, form in found), encoding="utf-8")
    changed = [
        f"{now} files instead of {was}: {form}"
        for (was, form), (now, _) in zip(lines, found, strict=True)
        if now != was
    ]
    assert not changed, "\n".join(changed)
    assert len(lines) > 500
