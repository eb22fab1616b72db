"""A metadata file encoded from the version before it has the bytes of one encoded whole."""

from __future__ import annotations

import random
from typing import Any

import pytest

from icesql.iceberg.metadata.json_writer import metadata_bytes
from icesql.iceberg.metadata.table_metadata import metadata_document, parse_metadata
from icesql.iceberg.metadata.written import WrittenMetadata, encoded

# Values with several JSON forms, or none, and values that may be taken for a missing number.
TEXTS = (
    "plain", "", "null", ":null", '"null",null', "[null]", "é\u2028\x7f", "\x00\x1f\t\"\\/", "\U0001f600",
    "\ud800", "NaN", "]}", ",",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    0, -1, (1 << 63) - 1, 1 << 63, 1 << 64, 1 << 100, 1.0, 1e16, -0.0, None, True, [], {}, [None],
    {"a": None}, {"schema-id": 0}, [1, [2, {"b": "c"}]],
)  # fmt: skip


def checked(document: dict[str, Any], base: WrittenMetadata | None) -> WrittenMetadata | None:
    made = encoded(document, base)
    assert made.packed(gzipped=False) == metadata_bytes(document)
    assert metadata_document(made.packed(gzipped=True), "m") == metadata_document(made.data, "m")
    written = made.written("m")
    if written is not None:
        assert written.document == metadata_document(made.data, "m")
        assert list(written.document) == list(metadata_document(made.data, "m"))
        assert written.metadata == parse_metadata(made.data, "m")
        found, read = written.metadata.snapshots, parse_metadata(made.data, "m").snapshots
        assert list(found.items()) == list(read.items())
    return written


def document(snapshots: list[Any], log: list[Any], **others: Any) -> dict[str, Any]:
    schema = {"type": "struct", "schema-id": 0, "fields": []}
    return {
        "format-version": 2, "table-uuid": "u", "location": "file:/w/t", "last-updated-ms": 7,
        "current-schema-id": 0, "schemas": [schema], "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}], "current-snapshot-id": -1,
        "snapshots": snapshots, "snapshot-log": log, **others,
    }  # fmt: skip


def snapshot(number: int, **others: Any) -> dict[str, Any]:
    return {
        "snapshot-id": number, "timestamp-ms": number, "manifest-list": f"file:/w/t/{number}.avro",
        "summary": {"operation": "append", "added-records": str(number)}, **others,
    }  # fmt: skip


def entry(number: int) -> dict[str, Any]:
    return {"timestamp-ms": number, "snapshot-id": number}


@pytest.mark.parametrize("seed", range(20))
def test_any_history_is_written_as_if_each_version_were_the_first(seed: int) -> None:
    chance = random.Random(seed)
    base: WrittenMetadata | None = None
    for number in range(1, 60):
        held = [] if base is None else base.document["snapshots"]
        log = [] if base is None else base.document["snapshot-log"]
        others: dict[str, Any] = {}
        if chance.random() < 0.15:
            others = {"properties": {chance.choice(TEXTS): chance.choice(TEXTS)}}
        match chance.choice(
            ("append",) * 6 + ("expire", "nothing", "other", "equal", "odd", "anew")
        ):
            case "append":
                text = chance.choice(TEXTS) if chance.random() < 0.3 else "x"
                held = [*held, snapshot(number, **{"key-id": text})]
                log = [*log, entry(number)]
            case "expire":
                held, log = held[1:], log[2:]
            case "other" if held:
                held = [*held[:-1], snapshot(number)]
            case "equal":  # the same by value, and other objects
                held = [{**each} for each in held]
            case "odd":
                held = [*held, snapshot(number, odd=chance.choice(VALUES))]
            case "anew":
                base = None
        before = base
        kept = None if before is None else metadata_bytes(before.document)
        base = checked(document(held, log, **others), before)
        # What went before is as it was.
        assert before is None or metadata_bytes(before.document) == kept


def test_only_what_is_new_is_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    first = checked(document([snapshot(1), snapshot(2)], [entry(1), entry(2)]), None)
    assert first is not None
    held, log = first.document["snapshots"], first.document["snapshot-log"]
    second = checked(document([*held, snapshot(3)], [*log, entry(3)]), first)
    assert second is not None
    for key in ("snapshots", "snapshot-log"):
        assert second.arrays[key].startswith(first.arrays[key])
        assert all(a is b for a, b in zip(second.document[key], first.document[key], strict=False))


def test_a_snapshot_listed_twice_stays_so() -> None:
    first = checked(document([snapshot(1), snapshot(1)], [entry(1)]), None)
    assert first is not None
    held = first.document["snapshots"]
    second = checked(document([*held, snapshot(2), snapshot(1)], [entry(2)]), first)
    assert second is not None
    assert list(second.metadata.snapshots) == [1, 2]


def test_a_number_that_json_lacks_is_refused() -> None:
    first = checked(document([snapshot(1)], []), None)
    assert first is not None
    bad = [*first.document["snapshots"], snapshot(2, odd=float("nan"))]
    with pytest.raises(ValueError):
        encoded(document(bad, []), first)
    with pytest.raises(ValueError):
        encoded(document(first.document["snapshots"], [], odd=float("inf")), first)
    # A null is none, and the key of a sort order that has the word in it neither.
    checked(document(first.document["snapshots"], [], odd=None), first)
    order = {"sort-orders": [{"order-id": 0, "fields": []}], "x": {"null-order": "nulls-first"}}
    assert checked(document(first.document["snapshots"], [], **order), first) is not None
