"""Texts that two parsers may read differently: none of them may reveal internals of the engine.

    python tests/campaigns mutated_texts [--count 20000] [--seed 1]

Queries get quotes, comments, dollar quotes, Unicode spaces, semicolons and calls of the engine's
own functions at random places. Whatever the result, no row contains a word that only the engine's
settings, catalogs or a file beside the tables contain, and every error is icesql's.
"""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import icesql
from tests.tables import read_cases
from tests.writer.fields import fields
from tests.writer.table import TableWriter

SECRET = "zebra-7731"
LEAKS = (SECRET, "allow_community_extensions", "pg_attribute", "autoload_known_extensions")
FIELDS = fields("a long, g string")
QUERIES, PIECES, PAYLOADS = (
    tuple(text for kind, text in read_cases(__file__, "mutated_texts.tsv", 1) if kind == wanted)
    for wanted in ("query", "piece", "payload")
)


def mutated(rng: random.Random, injected: tuple[str, ...]) -> str:
    """A query with some pieces inserted, and some characters removed."""
    text = rng.choice(QUERIES)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        place = rng.randrange(len(text) + 1)
        piece = rng.choice(injected if rng.random() < 0.3 else PIECES)
        taken = rng.choice((0, 0, 0, 1, 4))
        text = text[:place] + piece + text[place + taken :]
    return text


@contextmanager
def opened() -> Iterator[tuple[icesql.Connection, str]]:
    """A connection to a table, and a file beside it that no query may read."""
    with tempfile.TemporaryDirectory() as folder:
        table = TableWriter(Path(folder) / "d" / "t", FIELDS)
        table.commit([table.data_file([{"a": n, "g": "xyz"[n % 3]} for n in range(5)])])
        file = Path(folder) / "d" / "t" / "secret.csv"
        file.write_text(SECRET)
        with icesql.connect(warehouse=folder) as connection:
            connection.execute("USE d")
            yield connection, str(file)


def run(count: int, seed: int) -> Counter[str]:
    """Count the outcomes of ``count`` texts. AssertionError for one that reveals internals."""
    rng = random.Random(seed)
    found: Counter[str] = Counter()
    with opened() as (connection, file):
        injected = tuple(each.replace("{file}", file) for each in PAYLOADS)
        for _ in range(count):
            text = mutated(rng, injected)
            try:
                rows = connection.execute(text).fetchmany(50)
            except icesql.Error as error:
                if isinstance(error, icesql.InternalError):
                    raise AssertionError(text) from error
                found[type(error).__name__] += 1
                continue
            shown = repr(rows)
            for leak in LEAKS:
                assert leak not in shown or leak in text, (text, shown)
            found["rows"] += 1
    return found


def main(*, count: int = 20_000, seed: int = 1) -> None:
    """Run ``count`` texts, and print their outcomes."""
    for name, number in run(count, seed).most_common():
        print(f"{number:7,} {name}")
