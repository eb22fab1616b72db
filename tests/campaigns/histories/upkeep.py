"""Check the predictions of the doctor and of maintenance; a second run finds nothing to do."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.campaigns.histories import files

NEAR = 0.1
# In the order in which gains are computed.
FOLLOWED = (
    "small files", "deletes", "manifests", "manifest clustering", "old snapshots", "orphans",
)  # fmt: skip
ACTIONS = ("convert", "compact", "deletes", "manifests", "statistics", "expire", "orphans")
COUNTED = ("data_files", "delete_files", "equality_delete_files", "manifests")
Document = Callable[[], dict[str, Any]]


def follow_doctor(con: Any, name: str, document: Document, open_ended: bool) -> Iterator[str]:
    """Run the doctor's statements, and compare their savings with the predicted gain.

    More bytes may be saved: files that a rewrite replaced are old by the time of the expiry.
    Nothing is predicted for files of older partition specs, and for branches: ``open_ended``. In
    small tables a difference of one manifest does not matter.
    """
    diagnosis, before, sizes = con.doctor(name), files.counts(document()), _sizes(document())
    for wanted in FOLLOWED:
        for finding in diagnosis.findings:
            if finding.name == wanted and finding.statement:
                con.execute(finding.statement).fetchall()
    after, left = files.counts(document()), files.there(document())
    opened = ("data_files", "delete_files"), ("data_files", "delete_files", "live_manifests")
    # Positions replace keys, in an unpredictable number of files.
    converts = any("convert_equality" in each.statement for each in diagnosis.findings)
    for what, keys in zip(("files", "requests"), opened, strict=True):
        came = sum(before[key] - after[key] for key in keys)
        if not converts:
            yield from _reached(what, getattr(diagnosis.gain, what), came, open_ended)
    freed = sum(size for path, size in sizes.items() if path not in left)
    yield from _reached("bytes", diagnosis.gain.bytes, freed, True)


def maintain(con: Any, name: str, document: Document, folder: Path) -> Iterator[str]:
    """Run maintenance twice, and compare its predictions with the manifests."""
    policy = folder / "policy.toml"
    actions = ", ".join(f'"{each}"' for each in ACTIONS)
    policy.write_text(
        f'actions = [{actions}]\nretention = "0s"\nshort_retention = true\nmin_snapshots = 1\n'
    )
    then = files.counts(document())
    (table,) = con.maintain(name, policy=policy).tables
    now = files.counts(document())
    if table.status not in ("done", "nothing"):
        yield f"maintenance ended {table.status}: {table.note}"
    for key in COUNTED:
        if key in table.predicted:
            promised = then[key] - table.predicted[key]
            yield from _reached(key, promised, then[key] - now[key], True)
        told = [each.reached[key] for each in table.actions if key in each.reached]
        # A later commit may write one more manifest, but no files.
        if told and key != "manifests" and told[-1] != now[key]:
            yield f"{key} are {now[key]}, not {told[-1]} as told"
    for each in table.actions:
        if each.status in ("failed", "refused"):
            yield f"{each.action} {each.status}: {each.note}"
        for key, value in each.predicted.items():
            reached = each.reached.get(key)
            gain = then[key] - value if key in COUNTED else value
            # More may be saved than predicted: with several specs only a part is predicted.
            short = 0 if reached is None else reached - value
            short = -short if key.startswith("removed") else short
            if reached is None or short > NEAR * abs(gain):
                yield f"{each.action} told {key} {value}, not {reached}"
    (again,) = con.maintain(name, policy=policy).tables
    if again.status != "nothing":
        did = [(each.action, each.status, each.note) for each in again.actions]
        yield f"{again.status} in the second run: {did} {again.note}"


def _reached(what: str, promised: int, came: int, open_ended: bool) -> Iterator[str]:
    too_few = came < promised * (1 - NEAR)
    if too_few or (not open_ended and came > promised * (1 + NEAR) + 1):
        yield f"{promised:,} {what} fewer were promised, {came:,} came"


def _sizes(document: dict[str, Any]) -> dict[str, int]:
    return {each: os.path.getsize(each) for each in files.there(document)}
