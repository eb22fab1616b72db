"""What DuckDB has open is left alone in a process that was forked.

DuckDB's threads are not in the child: its destructors would crash there, or wait for ever.
"""

from __future__ import annotations

import os
from typing import Any, Final
from weakref import WeakSet

_OPEN: Final[WeakSet[Any]] = WeakSet()


def keep_in_forks(owner: Any) -> None:
    """Never collect ``owner``, nor what it refers to, in a fork of this process."""
    _OPEN.add(owner)


def _keep() -> None:
    if not _OPEN:
        return
    import ctypes

    for owner in list(_OPEN):
        # A reference that nobody gives back, not even the interpreter at its end.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(owner))
    _OPEN.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_keep)
