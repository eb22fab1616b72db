"""The cache keeps what fits and forgets the oldest."""

from __future__ import annotations

import threading

from icesql.storage.cache import BoundedCache, kept


def test_what_was_put_is_found_until_newer_values_need_the_room() -> None:
    cache = BoundedCache(100)
    cache.put(("manifest", "a", 1), "A", 40)
    cache.put(("manifest", "b", 1), "B", 40)
    assert cache.get(("manifest", "a", 1)) == "A"  # now b is the oldest
    cache.put(("manifest", "c", 1), "C", 40)
    assert cache.get(("manifest", "b", 1)) is None
    assert cache.get(("manifest", "a", 1)) == "A"
    assert cache.bytes_used == 80


def test_a_value_larger_than_the_cache_is_not_kept_and_displaces_nothing() -> None:
    cache = BoundedCache(100)
    cache.put("small", 1, 10)
    cache.put("large", 2, 101)
    assert (cache.get("small"), cache.get("large"), cache.bytes_used) == (1, None, 10)


def test_a_value_larger_than_the_cache_is_found_while_somebody_holds_it() -> None:
    class Large:
        pass

    cache, value = BoundedCache(100), Large()
    cache.put("a", value, 101)
    assert cache.get("a") is value
    assert (len(cache), cache.bytes_used) == (0, 0)
    cache.remove("a")
    assert cache.get("a") is None
    cache.put("a", value, 101)
    del value
    assert cache.get("a") is None


def test_putting_again_replaces_the_value_and_its_size() -> None:
    cache = BoundedCache(100)
    cache.put("k", "old", 90)
    cache.put("k", "new", 20)
    assert (cache.get("k"), cache.bytes_used, len(cache)) == ("new", 20, 1)
    cache.clear()
    assert (cache.get("k"), cache.bytes_used) == (None, 0)


def test_threads_share_it_without_losing_count() -> None:
    cache = BoundedCache(1000)

    def work(first: int) -> None:
        for number in range(first, first + 2000):
            cache.put(number % 300, number, 7)
            cache.get((number * 7) % 300)

    threads = [threading.Thread(target=work, args=(start,)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert cache.bytes_used == 7 * len(cache) <= 1000


def test_a_value_is_made_once_and_each_time_without_a_cache_or_a_key() -> None:
    made: list[int] = []

    def make() -> tuple[list[int], int]:
        made.append(1)
        return [len(made)], 7

    cache = BoundedCache(100)
    assert [kept(cache, "k", make), kept(cache, "k", make)] == [[1], [1]]
    assert cache.bytes_used == 7
    assert [kept(cache, None, make), kept(None, "k", make)] == [[2], [3]]
    assert kept(cache, "k", make) == [1]
