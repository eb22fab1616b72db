"""sqlglot's parser and generator classes in a form that can be subclassed.

The wheel of ``sqlglot[c]`` puts compiled modules before the Python sources that they were made of,
and a compiled class takes no subclass. The same sources are then run a second time, under names
of icesql's own, for these alone.
"""

from __future__ import annotations

import builtins
import importlib.util
import sys
import threading
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any, Final, cast

from sqlglot import parser

from icesql.errors import OperationalError

# Names of modules that begin so: parsers and generators too.
_OPENED: Final = ("sqlglot.parser", "sqlglot.generator")
_PREFIX: Final = "icesql.sql.opened."

_loading: Final = threading.RLock()
_modules: dict[str, ModuleType] = {}


def is_compiled() -> bool:
    """Whether sqlglot's parser is a compiled module."""
    return not str(parser.__file__).endswith((".py", ".pyc"))


def open_class(compiled: type) -> type:
    """The class that a subclass can be made of: the one given, unless it is compiled."""
    if not is_compiled():
        return compiled
    with _loading:
        return cast("type", getattr(_module(compiled.__module__), compiled.__name__))


def _module(name: str) -> ModuleType:
    """A module of sqlglot run from its Python source."""
    found = _modules.get(name)
    if found is not None:
        return found
    compiled = importlib.import_module(name)
    # parser.cpython-311-x86_64-linux-gnu.so lies beside parser.py.
    path = Path(str(compiled.__file__))
    source = path if path.suffix == ".py" else path.with_name(f"{path.name.partition('.')[0]}.py")
    if not source.is_file():
        raise OperationalError(
            f"sqlglot is compiled and its source {source.name} is missing; install sqlglot from "
            "its wheel: pip install --force-reinstall sqlglot"
        )
    opened = _PREFIX + name
    loader = SourceFileLoader(opened, str(source))
    spec = importlib.util.spec_from_file_location(
        opened,
        source,
        loader=loader,
        submodule_search_locations=[str(source.parent)] if source.stem == "__init__" else None,
    )
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    # Its own imports of what is opened must find that.
    module.__dict__["__builtins__"] = {**vars(builtins), "__import__": _import}
    _modules[name] = sys.modules[opened] = module
    try:
        loader.exec_module(module)
    except BaseException:
        del _modules[name], sys.modules[opened]
        raise
    return module


def _import(
    name: str,
    globals: Any = None,
    locals: Any = None,
    fromlist: Any = (),
    level: int = 0,
) -> Any:
    module = builtins.__import__(name, globals, locals, fromlist, level)
    if level or not fromlist:
        return module
    if name.startswith(_OPENED):
        return _module(name)
    opened = [each for each in fromlist if f"{name}.{each}".startswith(_OPENED)]
    if not opened:
        return module
    view = ModuleType(name)
    view.__dict__.update(vars(module))
    for each in opened:
        setattr(view, each, _module(f"{name}.{each}"))
    return view
