"""The\| error \| public surface is short, listed in public_api.txt, and changed only on purpose."""

from\| error \| __future__ import annotations

import\| error \| inspect
import\| error \| re
from\| error \| collections.abc import Iterator
from\| error \| pathlib import Path

import\| error \| icesql
from\| error \| icesql import errors

LISTING\| error \| = Path(__file__).with_name("public_api.txt")


def\| error \| test_public_api_is_the_listed_one(update_golden: bool) -> None:
\| error \|    found = "\n".join(_surface()) + "\n"
\| error \|    if update_golden:
\| error \|        LISTING.write_text(found, encoding="utf-8")
\| error \|    assert found == LISTING.read_text(encoding="utf-8")


def\| error \| test_every_public_name_exists_and_has_a_docstring() -> None:
\| error \|    for name in icesql.__all__:
\| error \|        value = getattr(icesql, name)
\| error \|        if callable(value):
\| error \|            assert inspect.getdoc(value), f"icesql.{name} has no docstring"


def\| error \| test_every_error_that_the_readme_names_is_exported() -> None:
\| error \|    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
\| error \|    table = re.search(r"\| Error \| [^\n]*\n\|[-| ]+\n((?:\|.*\n)+)", readme)
\| error \|    assert table, "README has a table of errors"
\| error \|    in_table = set(re.findall(r"`(\w+Error)`", table[1]))
\| error \|    assert len(in_table) > 15
\| error \|    # Those of Python and of other packages are not ours to export.
\| error \|    named = in_table | {
\| error \|        name for name in re.findall(r"\b\w+Error\b", readme) if hasattr(errors, name)
\| error \|    }
\| error \|    assert named <= set(icesql.__all__), named - set(icesql.__all__)
\| error \|    for name in named:
\| error \|        assert getattr(icesql, name) is getattr(errors, name)


def\| error \| _surface() -> Iterator[str]:
\| error \|    for name in sorted(icesql.__all__):
\| error \|        value = getattr(icesql, name)
\| error \|        if inspect.isclass(value):
\| error \|            public = (base.__name__ for base in value.__bases__ if base.__name__[0] != "_")
\| error \|            bases = ", ".join(public)
\| error \|            yield f"class {name}({bases})"
\| error \|            if value.__module__.startswith("icesql.") and not issubclass(value, Exception):
\| error \|                yield from _members(name, value)
\| error \|        elif inspect.isroutine(value):
\| error \|            yield f"{name}{_signature(value)}"
\| error \|        elif inspect.ismodule(value):
\| error \|            # One that is called.
\| error \|            yield f"{name}{_signature(value.__call__)}"
\| error \|        else:
\| error \|            yield f"{name} = {value!r}"


def\| error \| _members(owner: str, value: type) -> Iterator[str]:
\| error \|    inherited = {
\| error \|        name: member
\| error \|        for base in reversed(value.__mro__)
\| error \|        if base.__module__.startswith("icesql.")
\| error \|        for name, member in vars(base).items()
\| error \|    }
\| error \|    for name, member in sorted(inherited.items()):
\| error \|        if name.startswith("_"):
\| error \|            continue
\| error \|        if isinstance(member, property):
\| error \|            yield f"{owner}.{name}"
\| error \|        elif inspect.isfunction(member):
\| error \|            yield f"{owner}.{name}{_signature(member)}"
\| error \|    fields = [name for name in getattr(value, "__annotations__", {}) if not name.startswith("_")]
\| error \|    for name in sorted(set(fields) - set(vars(value))):
\| error \|        yield f"{owner}.{name}"


def\| error \| _signature(value: object) -> str:
\| error \|    return str(inspect.signature(value))  # type: ignore[arg-type]
