"""The functions that the engine may evaluate while a query is planned, and their limits."""

from __future__ import annotations

from typing import Final

from icesql.sql.engine_functions import planned_functions

KNOWN: Final = planned_functions()
# The result of these functions may be longer than the arguments by a factor: an expression may have
# one such call.
GROWING: Final = frozenset({"replace", "translate", "regexp_extract", "strftime"})
# Macros of the engine that repeat an argument, which doubles its size: only few calls are allowed.
DOUBLING: Final = frozenset({"nullif", "split_part"})
