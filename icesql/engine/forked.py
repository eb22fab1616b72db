"""Leave DuckDB's open objects alone in a forked process.

DuckDB's threads are not in the child: its destructors would crash there, or wait for ever.
"""

from __future__ import annotations

import os
from typing import Any, Final
from weakref import WeakSet

from msgspec import Struct

_OPEN: Final[WeakSet[Any]] = WeakSet()


class _Immortal(Struct, gc=False):
    """Refers to itself, and the garbage collector does not see it: it is never destroyed.

    A module's variable would not do: the interpreter clears those when it ends.
    """

    owners: list[Any]
    itself: _Immortal | None = None


def keep_in_forks(owner: Any) -> None:
    """Never collect ``owner``, nor what it refers to, in a fork of this process."""
    _OPEN.add(owner)


def _keep() -> None:
    if _OPEN:
        kept = _Immortal(list(_OPEN))
        kept.itself = kept
        _OPEN.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_keep)
