"""The words that begin a clause of time travel, by system, and what is refused by its name."""

from __future__ import annotations

from typing import Final

from msgspec import Struct


class Phrase(Struct, frozen=True):
    """Words that begin a clause; ``needs_as_of``: AS OF or BEFORE has to follow them."""

    words: tuple[str, ...]
    kind: str
    needs_as_of: bool = False


# Longest first, so that FOR SYSTEM TIME is not taken for something shorter.
PHRASES: Final = (
    Phrase(("FOR", "SYSTEM", "VERSION"), "VERSION", True),
    Phrase(("FOR", "SYSTEM", "TIME"), "TIMESTAMP", True),
    Phrase(("FOR", "SYSTEM_VERSION"), "VERSION", True),
    Phrase(("FOR", "SYSTEM_TIME"), "TIMESTAMP", True),
    Phrase(("FOR", "TIMESTAMP"), "TIMESTAMP", True),
    Phrase(("FOR", "TIME"), "TIMESTAMP", True),
    Phrase(("FOR", "VERSION"), "VERSION", True),
    Phrase(("SYSTEM_VERSION", "AS", "OF"), "VERSION"),
    Phrase(("SYSTEM_TIME", "AS", "OF"), "TIMESTAMP"),
    Phrase(("TIMESTAMP", "AS", "OF"), "TIMESTAMP"),
    Phrase(("VERSION", "AS", "OF"), "VERSION"),
    Phrase(("SNAPSHOT", "AS", "OF"), "VERSION"),
    Phrase(("AS", "OF", "TIMESTAMP"), "TIMESTAMP"),
    Phrase(("AS", "OF", "VERSION"), "VERSION"),
    Phrase(("AS", "OF", "SYSTEM", "TIME"), "TIMESTAMP"),
    Phrase(("AT", "TIMESTAMP"), "TIMESTAMP"),
    Phrase(("AT", "SNAPSHOT"), "VERSION"),
    Phrase(("AT", "BRANCH"), "BRANCH"),
    Phrase(("AT", "TAG"), "TAG"),
    Phrase(("AT", "REFERENCE"), "VERSION_REF"),
    Phrase(("AT", "REF"), "VERSION_REF"),
)
# The same before a text alone, as Dremio and Dolt have them.
BEFORE_TEXT: Final = (
    Phrase(("AS", "OF"), "TEXT"),
    Phrase(("AT",), "TIMESTAMP"),
)
AT_KINDS: Final = {
    "VERSION": "VERSION",
    "SNAPSHOT": "VERSION",
    "TIMESTAMP": "TIMESTAMP",
    "VERSION_REF": "VERSION_REF",
    "VERSION_TAG": "VERSION_TAG",
    "BRANCH": "BRANCH",
    "TAG": "TAG",
    "OFFSET": "OFFSET",
}
BEFORE_KINDS: Final = {
    "TIMESTAMP": "TIMESTAMP BEFORE",
    "VERSION": "VERSION BEFORE",
    "OFFSET": "OFFSET BEFORE",
}
# Kinds that name a branch, which may be read as it was at a time.
BRANCH_KINDS: Final = ("BRANCH", "VERSION_REF")
OTHER_RANGES: Final = ("BETWEEN", "FROM", "ALL", "CONTAINED")
_CHANGES: Final = "use CHANGES FROM VERSION a TO VERSION b for what commits did to rows"
CHANGES_HINT: Final = {
    "VERSION": _CHANGES,
    "TIMESTAMP": "use CHANGES FROM TIMESTAMP a TO TIMESTAMP b for what commits did to rows",
}
# Clauses of other systems that have no meaning for a table of Iceberg.
REFUSED: Final[tuple[tuple[tuple[str, ...], str], ...]] = (
    (("AS", "OF", "SCN"), "use VERSION AS OF and the id of a snapshot"),
    (("VERSIONS", "BETWEEN"), _CHANGES.replace("VERSION a TO VERSION", "TIMESTAMP a TO TIMESTAMP")),
    (("AT", "COMMIT"), "use AT SNAPSHOT or AT BRANCH: Nessie's commits are of its catalog"),
    (
        ("SETTINGS", "ICEBERG_SNAPSHOT_ID"),
        "write VERSION AS OF and the id of the snapshot behind the table",
    ),
    (
        ("SETTINGS", "ICEBERG_TIMESTAMP_MS"),
        "write TIMESTAMP AS OF epoch_ms(…) behind the table",
    ),
)
# What Snowflake's clauses take beside versions and times.
NO_KIND: Final = "use {word} (VERSION => …) or {word} (TIMESTAMP => …)"
