"""Large tables are planned from the filter's values of each entry: the same plan as from all."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from icesql.iceberg.expressions.predicate import Leaf, Operation, Predicate, Term
from icesql.iceberg.manifest import filtered_manifest
from icesql.iceberg.manifest.filtered_manifest import NarrowEntries
from icesql.scan import planner
from icesql.storage.cache import BoundedCache
from icesql.storage.open import Storage
from tests.scan.metadata_only import (
    DELETED,
    EXISTING,
    MetadataOnly,
    column,
    data_file,
    id_is,
    position_deletes,
    region_is,
    scan_of,
)

BY_REGION = [{"source-id": 2, "field-id": 1000, "transform": "identity", "name": "region"}]


def long(value: int) -> bytes:
    return value.to_bytes(8, "little", signed=True)


def entries(rng: random.Random, count: int, first: int = 0) -> list[dict[str, Any]]:
    """Files of ids and names, a few without rows, bounds or values, a few no longer live."""
    found = []
    for number in range(first, first + count):
        low, name = rng.randrange(1000), rng.choice(("eu", "us", "asia")) + "x" * rng.randrange(4)
        lower: dict[int, bytes] = {1: long(low), 3: name.encode()}
        upper: dict[int, bytes] = {1: long(low + rng.randrange(9)), 3: name.encode() + b"~"}
        nulls = {1: 0, 3: 0}
        if rng.random() < 0.15:
            gone = rng.choice((1, 3))
            del lower[gone], upper[gone]
            nulls[gone] = rng.choice((10, 3))
        more: dict[str, Any] = {}
        if rng.random() < 0.1:
            more = {"status": rng.choice((DELETED, EXISTING)), "sequence_number": 1}
        if rng.random() < 0.1:
            more["record_count"] = 0 if rng.random() < 0.9 else -1
        found.append(
            data_file(
                f"data/{rng.randrange(1 << rng.randrange(40))}-{number}",
                {"region": rng.choice(("eu", "us", None))},
                lower_bounds=lower,
                upper_bounds=upper,
                null_value_counts=nulls,
                value_counts={1: 10, 3: 10},
                **more,
            )
        )
    return found


def filters(rng: random.Random) -> Predicate:
    """A random condition of up to three leaves."""
    found: Predicate | None = None
    for _ in range(rng.randrange(1, 4)):
        operation = rng.choice(list(Operation))
        leaf: Predicate
        if rng.random() < 0.2:
            leaf = region_is(rng.choice(("eu", "us")))
        elif operation in (Operation.IS_NULL, Operation.NOT_NULL):
            leaf = Leaf(operation, rng.choice((Term(1, "id"), Term(3, "name"))))
        elif operation in (Operation.STARTS_WITH, Operation.NOT_STARTS_WITH):
            leaf = Leaf(operation, Term(3, "name"), rng.choice(("eu", "usx", "b")))
        elif operation in (Operation.IN, Operation.NOT_IN):
            leaf = Leaf(operation, Term(1, "id"), frozenset((rng.randrange(1000), 5)))
        elif operation in (Operation.IS_NAN, Operation.NOT_NAN):
            continue
        else:
            leaf = Leaf(operation, Term(1, "id"), rng.randrange(1000))
        found = leaf if found is None else found & leaf if rng.random() < 0.6 else found | leaf
    return id_is(rng.randrange(1000)) if found is None else found


def built(folder: Path, rng: random.Random, manifests: int = 4, count: int = 20) -> MetadataOnly:
    table = MetadataOnly(
        folder,
        specs={0: BY_REGION},
        fields=[column(1, "id"), column(2, "region", "string"), column(3, "name", "string")],
    )
    for number in range(manifests):
        table.manifest(*entries(rng, count, number * count))
    return table


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kept", [False, True])
def test_random_filters_leave_the_same_files(tmp_path, monkeypatch, seed: int, kept: bool) -> None:
    rng = random.Random(seed)
    metadata = built(tmp_path, rng)
    metadata.manifest(position_deletes("d", partition={"region": "eu"}))
    table = metadata.table()
    cached = replace(table, storage=Storage({}, table.storage.reroot, cache=BoundedCache()))
    narrow = []

    def noted(*args: Any, **more: Any) -> Any:
        narrow.append(real(*args, **more))
        return narrow[-1]

    real = filtered_manifest.decode_for_filter
    monkeypatch.setattr(filtered_manifest, "decode_for_filter", noted)
    for _ in range(40):
        row_filter = filters(rng)
        monkeypatch.setattr(planner, "_MANY_ENTRIES", 1 << 40)
        whole = planner.plan(scan_of(table, row_filter), planner.QueryContext())
        monkeypatch.setattr(planner, "_MANY_ENTRIES", 0)
        used = cached if kept else table
        found = planner.plan(scan_of(used, row_filter), planner.QueryContext())
        assert [each.data_file for each in found.files] == [each.data_file for each in whole.files]
        assert [each.deletes for each in found.files] == [each.deletes for each in whole.files]
        assert [each.residual for each in found.files] == [each.residual for each in whole.files]
        assert found.counts == whole.counts
        assert found.projected_bytes == whole.projected_bytes
    assert sum(isinstance(each, NarrowEntries) for each in narrow) > 0.6 * len(narrow) > 1


def test_a_new_snapshot_decodes_only_its_own_manifests(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(planner, "_MANY_ENTRIES", 0)
    decoded: list[str] = []

    def counted(data: Any, manifest: Any, *args: Any, **more: Any) -> Any:
        decoded.append(manifest.manifest_path)
        return real(data, manifest, *args, **more)

    real = filtered_manifest.decode_for_filter
    monkeypatch.setattr(filtered_manifest, "decode_for_filter", counted)
    rng = random.Random(5)
    metadata = built(tmp_path, random.Random(1))
    cache = BoundedCache()

    def plan(row_filter: Predicate) -> int:
        table = metadata.table()
        table = replace(table, storage=Storage({}, table.storage.reroot, cache=cache))
        planner.plan(scan_of(table, row_filter), planner.QueryContext())
        number = len(decoded)
        decoded.clear()
        return number

    assert plan(id_is(3)) == 4
    assert plan(id_is(700)) == 0
    # One manifest has a file of unknown rows and was decoded whole; the others from cached bytes.
    assert plan(Leaf(Operation.EQ, Term(3, "name"), "eu")) == 3
    assert plan(Leaf(Operation.EQ, Term(3, "name"), "us") & id_is(3)) == 0
    metadata.manifest(*entries(rng, 30, 900))
    assert plan(id_is(3)) == 1
    assert 0 < cache.bytes_used < 150 * 1_000


def test_what_is_kept_stays_within_the_cache(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(planner, "_MANY_ENTRIES", 0)
    table = built(tmp_path, random.Random(6), manifests=10).table()
    cache = BoundedCache(60_000)
    table = replace(table, storage=Storage({}, table.storage.reroot, cache=cache))
    for _ in range(2):
        found = planner.plan(scan_of(table, id_is(3)), planner.QueryContext())
        assert found.counts.scanned_data_manifests == 10
        assert cache.bytes_used <= 60_000
