"""Run a campaign by its name, or list them.

    python tests/campaigns [NAME [ARGUMENT …]]

A campaign is a module of this folder with a function ``main``, whose parameters are the arguments:
those that only have names are options. What it returns is how much was wrong.
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

KEYWORD_ONLY = inspect.Parameter.KEYWORD_ONLY
HERE = Path(__file__).resolve().parent


def campaigns() -> dict[str, str]:
    """The first line of each campaign's text by its name."""
    texts = {path.stem: path.read_text(encoding="utf-8") for path in sorted(HERE.glob("[a-z]*.py"))}
    return {
        name: text.partition('"""')[2].partition("\n")[0]
        for name, text in texts.items()
        if re.search(r"^(def main\(|main = )", text, re.MULTILINE)
    }


def parser_of(main: Callable[..., object], about: str | None) -> argparse.ArgumentParser:
    """A parser of the arguments that a function takes."""
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
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
        if each.kind is KEYWORD_ONLY:
            given["required"] = each.default is each.empty
            parser.add_argument("--" + name.replace("_", "-"), **given)
        else:
            parser.add_argument(name, **({"nargs": "?"} if "default" in given else {}) | given)
    return parser


def run(arguments: list[str]) -> bool:
    """Whether anything was wrong; the list of campaigns where none is named."""
    known = campaigns()
    name, *rest = arguments or [""]
    if name not in known:
        print(__doc__)
        for each, about in known.items():
            print(f"  {each:<20}{about}")
        return bool(name)
    module = import_module(f"tests.campaigns.{name}")
    taken = inspect.signature(module.main).parameters
    if [*taken] == ["arguments"]:  # which it reads itself
        return bool(module.main(rest))
    given = vars(parser_of(module.main, module.__doc__).parse_args(rest))
    places = [given.pop(each) for each in taken if taken[each].kind is not KEYWORD_ONLY]
    return bool(module.main(*places, **given))


if __name__ == "__main__":
    sys.path[0] = str(HERE.parents[1])
    sys.exit(run(sys.argv[1:]))
