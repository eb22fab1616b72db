"""sqlglot's nodes, imported at the first access: few statements need one."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import TYPE_CHECKING, Any


@functools.cache
def _loaded() -> Any:
    import logging

    # icesql reports sqlglot's problems itself; without a handler its log would go to stderr.
    logging.getLogger("sqlglot").addHandler(logging.NullHandler())
    from sqlglot import exp as found

    return found


def parts_of(node: exp.Expr) -> set[str]:
    """Return the names of the parts that a node has."""
    return {name for name, value in node.args.items() if value}


if TYPE_CHECKING:
    from sqlglot import exp
else:

    class _Nodes(ModuleType):
        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            found = self.__dict__[name] = getattr(_loaded(), name)
            return found

    exp = _Nodes("exp")
__all__ = ["exp", "parts_of"]
