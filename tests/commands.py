"""The commands of the laboratory: a name, and options that are the parameters of its function."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args, get_origin, get_type_hints

Main = Callable[..., object]


def parser_of(main: Main, about: str | None, options: bool) -> argparse.ArgumentParser:
    """A parser of the arguments that a function takes; ``options``: none is told by its place."""
    parser = argparse.ArgumentParser(
        description=(about or "").replace("%", "%%"),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    kinds = get_type_hints(getattr(main, "func", main))
    for name, each in inspect.signature(main).parameters.items():
        kind, given = kinds[name], dict[str, Any]()
        if each.default is not each.empty:
            given["default"] = each.default
        if kind is bool:
            given["action"] = "store_true"
        elif get_origin(kind) is Literal:
            given["choices"] = get_args(kind)
        elif get_origin(kind) is tuple:
            given |= {"type": get_args(kind)[0], "nargs": "*"}
        else:
            given["type"] = kind
        if options or each.kind is each.KEYWORD_ONLY:
            given["required"] = each.default is each.empty
            parser.add_argument("--" + name.replace("_", "-"), **given)
        else:
            parser.add_argument(name, **({"nargs": "?"} if "default" in given else {}) | given)
    return parser


def run(
    doc: str | None,
    known: Mapping[str, str],
    load: Callable[[str], tuple[Main, str | None]],
    arguments: list[str],
    options: bool = False,
) -> bool:
    """Whether anything was wrong; the list of what is ``known`` where none of it is named.

    ``load`` gives the function of a name and what is said of it.
    """
    name, *rest = arguments or [""]
    if name not in known:
        print(doc)
        for each, about in known.items():
            print(f"  {each:<20}{about}")
        return bool(name)
    main, about = load(name)
    given = vars(parser_of(main, about, options).parse_args(rest))
    keyword = {each.name for each in inspect.signature(main).parameters.values()
               if each.kind is each.KEYWORD_ONLY}  # fmt: skip
    places = [given.pop(each) for each in [*given] if each not in keyword]
    return bool(main(*places, **given))
