"""The words that begin a time-travel clause, by system, and clauses that are refused by name."""

from __future__ import annotations

from typing import Final

from icesql.sql.keywords import word_map

BEFORE_KINDS: Final = {kind: f"{kind} BEFORE" for kind in ("TIMESTAMP", "VERSION", "OFFSET")}


# These need AS OF or BEFORE after them.
RANGES: Final = word_map("""
FOR SYSTEM VERSION = VERSION
FOR SYSTEM TIME = TIMESTAMP
FOR SYSTEM_VERSION = VERSION
FOR SYSTEM_TIME = TIMESTAMP
FOR TIMESTAMP = TIMESTAMP
FOR TIME = TIMESTAMP
FOR VERSION = VERSION
""")
# Kinds that name a branch, which may be read as of a time.
BRANCH_KINDS: Final = ("BRANCH", "VERSION_REF")
# Words that begin a clause, and the kind of their value.
PHRASES: Final = {
    **{f"{words} AS OF": kind for words, kind in RANGES.items()},
    **{f"{words} BEFORE": BEFORE_KINDS[kind] for words, kind in RANGES.items()},
    **word_map("""
SYSTEM_VERSION AS OF = VERSION
SYSTEM_TIME AS OF = TIMESTAMP
TIMESTAMP AS OF = TIMESTAMP
VERSION AS OF = VERSION
SNAPSHOT AS OF = VERSION
AS OF TIMESTAMP = TIMESTAMP
AS OF VERSION = VERSION
AS OF SYSTEM TIME = TIMESTAMP
AT TIMESTAMP = TIMESTAMP
AT SNAPSHOT = VERSION
AT BRANCH = BRANCH
AT TAG = TAG
AT REFERENCE = VERSION_REF
AT REF = VERSION_REF
"""),
    # A bracket closes these.
    **{
        f"AT ( {kind} =>": kind
        for kind in (*BRANCH_KINDS, "VERSION", "TIMESTAMP", "VERSION_TAG", "TAG", "OFFSET")
    },
    "AT ( SNAPSHOT =>": "VERSION",
    **{f"BEFORE ( {kind} =>": before for kind, before in BEFORE_KINDS.items()},
}
# The same, only before a string literal, as in Dremio and Dolt.
BEFORE_TEXT: Final = {"AS OF": "TEXT", "AT": "TIMESTAMP"}
OTHER_RANGES: Final = ("BETWEEN", "FROM", "ALL", "CONTAINED")
CHANGES_HINT: Final = {
    "VERSION": "use CHANGES FROM VERSION a TO VERSION b for what commits did to rows",
    "TIMESTAMP": "use CHANGES FROM TIMESTAMP a TO TIMESTAMP b for what commits did to rows",
}
# Clauses of other systems that have no meaning for an Iceberg table.
REFUSED: Final = {
    "AS OF SCN": "use VERSION AS OF and the id of a snapshot",
    "VERSIONS BETWEEN": CHANGES_HINT["TIMESTAMP"],
    "AT COMMIT": "use AT SNAPSHOT or AT BRANCH: Nessie's commits are of its catalog",
    "SETTINGS ICEBERG_SNAPSHOT_ID": "write VERSION AS OF and the id of the snapshot behind the "
    "table",
    "SETTINGS ICEBERG_TIMESTAMP_MS": "write TIMESTAMP AS OF epoch_ms(…) behind the table",
}
# The hint for other kinds than versions and times in Snowflake's clauses.
NO_KIND: Final = "use {word} (VERSION => …) or {word} (TIMESTAMP => …)"
