"""The store's own error reaches the user once retries cannot help."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from icesql.errors import StorageError
from icesql.storage.open import Storage
from icesql.storage.stores.files import coalesced, split
from tests.rows import rows_of
from tests.stores.server import Answer, Store, error

PATH = "s3://lake/t/data/Part-0.parquet"


@pytest.fixture
def storage(store: Store) -> Storage:
    return Storage(store.properties())


@rows_of(__file__, "refusals.tsv", "status", "code", "message", "problem")
def test_a_refusal_is_told_at_once_in_the_words_of_the_store(
    storage: Storage, store: Store, status: str, code: str, message: str, problem: str
) -> None:
    refusal = error(int(status), code, message)
    if not code:
        refusal = Answer(int(status), message.encode())
    store.fault = lambda request: refusal
    with pytest.raises(StorageError) as caught:
        storage.read(PATH)
    assert str(caught.value) == f"cannot read {PATH}: {problem}"
    assert len(store.requests) == 1
    assert "wJalrXUtnFEMI" not in repr(caught.value.__cause__) + str(caught.value.__cause__)


def test_a_store_that_stays_busy_is_asked_again_and_then_told_with_the_attempts(
    storage: Storage, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("icesql.storage.stores.client._FIRST_WAIT", 0.001)
    monkeypatch.setattr("icesql.storage.stores.client._LONGEST_WAIT", 0.002)
    store.fault = lambda request: error(503, "SlowDown", "Please reduce your request rate.")
    with pytest.raises(StorageError, match=r"SlowDown: .* \(status 503, 9 attempts\)"):
        storage.read(PATH)
    assert len(store.requests) == 9


def test_a_store_that_is_not_there_is_told_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("icesql.storage.stores.client._FIRST_WAIT", 0.001)
    keys = {"s3.access-key-id": "a", "s3.secret-access-key": "bbbb", "s3.region": "r"}
    storage = Storage({**keys, "s3.endpoint": "http://127.0.0.1:1"})
    with pytest.raises(StorageError, match=r"the store cannot be reached \(3 attempts\)"):
        storage.read(PATH)


def test_keys_are_spelled_as_metadata_spells_them(storage: Storage, bucket: Path) -> None:
    for name in ("a b%20c", "ü=1/x y", "a+b=c", "x?y#z", "a:b*[c]", "{}|^~`'"):
        path = bucket / "lake" / "odd" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())
        assert storage.read(f"s3://lake/odd/{name}") == name.encode()
        assert storage.size(f"s3://lake/odd/{name}") == len(name.encode())
    assert storage.list_folder("s3://lake/odd/ü=1") == ["x y"]
    assert storage.exists("s3://lake/odd")
    assert not storage.exists("s3://lake/od")


def test_ranges_are_joined_over_small_gaps_and_cut_into_parts() -> None:
    assert coalesced([(50, 60), (0, 10), (12, 20), (200, 210)], gap=5) == [
        (0, 20),
        (50, 60),
        (200, 210),
    ]
    parts = list(split(7, 7 + (9 << 20)))
    assert parts[0][0] == 7
    assert parts[-1][1] == 7 + (9 << 20)
    assert all(one[1] == other[0] for one, other in pairwise(parts))
    assert max(end - first for first, end in parts) <= 4 << 20
