"""Which functions Spark's dialect has, by name; what they mean is known to ``query/dialects``."""

from __future__ import annotations

import functools

from icesql.sql.grammar import folder

DIALECT = "Spark's dialect"


@functools.cache
def spark_functions() -> frozenset[str]:
    """The names in ``grammar/spark_functions.txt``, in lower case."""
    found: set[str] = set()
    by_code = False
    for line in (folder() / "spark_functions.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            by_code = line == "[code]"
        elif by_code:
            found.update(line.split())
        elif line and not line.startswith("#"):
            found.add(line.partition("(")[0])
    return frozenset(found)
