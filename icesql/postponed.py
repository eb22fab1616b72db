"""Postpone imports that libraries make at their start, and few runs need, until they are used.

Only the ``icesql`` command does this, before anything else runs in its process: it changes the
modules that others import. They took a fourth of the time of a short command.
"""

from __future__ import annotations

import sys
import typing
from _thread import allocate_lock
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.machinery import PathFinder
from types import ModuleType
from typing import Any, Final

_PACKAGES: Final = ("duckdb", "asyncio")
_TAKING_AWAY: Final = allocate_lock()


def postpone_imports() -> None:
    """Install placeholders for the modules below; the real ones replace them when needed."""
    # For the versions of packages and their plug-ins; e-mail, sockets and zip files come with it.
    import importlib

    package = {"__path__": [f"{folder}/metadata" for folder in importlib.__path__]}
    _postpone("importlib.metadata", ("entry_points", "version"), package)
    _postpone("sqlglot.diff", ("diff",))
    # For fsspec, by which the engine writes its output.
    _postpone("asyncio", (), {"TimeoutError": TimeoutError})
    _postpone("difflib", ("get_close_matches",))
    if PathFinder.find_spec("typing_extensions") is not None:
        # msgspec takes these from there if it can.
        values = {"Required": typing.Required, "NotRequired": typing.NotRequired}
        _postpone("typing_extensions", ("get_type_hints",), values)
    _postpone_duckdb()


class _Postponed(ModuleType):
    """A placeholder for a module, until a name is needed that the placeholder does not have."""

    def __init__(
        self,
        name: str,
        names: Mapping[str, object],
        own: Callable[[str], Any] = lambda _: None,
    ) -> None:
        super().__init__(name)
        self.__dict__.update(names)
        self._own = own

    def __getattr__(self, name: str) -> Any:
        # Every import reads dunder names of modules. Only a package must be loaded for these, to
        # import a submodule of it.
        if name.startswith("__") and not (name == "__path__" and self.__name__ in _PACKAGES):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        value = self._own(name)
        if value is None:
            value = getattr(_real(self.__name__), name)
        self.__dict__[name] = value
        return value


def _postpone(
    module: str, functions: Sequence[str], values: Mapping[str, object] | None = None
) -> None:
    if module in sys.modules:
        return
    found = {name: _later(module, name) for name in functions}
    standing = sys.modules[module] = _Postponed(module, {**found, **(values or {})})
    parent, _, name = module.rpartition(".")
    if parent in sys.modules:
        setattr(sys.modules[parent], name, standing)


def _postpone_duckdb() -> None:
    """Install a placeholder for the package, with the names that it takes from its core.

    Its relations, expressions and readers are written in Python, and rows need none of them.
    """

    def core(name: str) -> Any:
        found = getattr(import_module("_duckdb"), name, None)
        is_error = isinstance(found, type) and issubclass(found, Exception)
        return found if is_error or name in ("connect", "tokenize", "token_type") else None

    # A release may keep its core elsewhere.
    if "duckdb" not in sys.modules and PathFinder.find_spec("_duckdb") is not None:
        sys.modules["duckdb"] = _Postponed("duckdb", {}, core)


def _later(module: str, name: str) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        return getattr(_real(module), name)(*arguments, **named)

    return call


def _real(module: str) -> ModuleType:
    # Of two threads only one removes the placeholder; no import waits for this lock.
    with _TAKING_AWAY:
        standing = sys.modules.get(module)
        if isinstance(standing, _Postponed):
            del sys.modules[module]
    try:
        return import_module(module)
    except BaseException:
        if isinstance(standing, _Postponed):
            sys.modules.setdefault(module, standing)
        raise
