"""Run a campaign by its name, or list them.

    python tests/campaigns [NAME [ARGUMENT …]]

A campaign is a module of this folder with a function ``main``, whose parameters are the arguments:
keyword-only parameters are options. It returns the number of problems.
"""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


def load(name: str) -> tuple[Any, str | None]:
    """The function of a campaign, and its description."""
    module = import_module(f"tests.campaigns.{name}")
    return module.main, module.__doc__


def campaigns() -> dict[str, str]:
    """The first line of each campaign's description, by name."""
    texts = {path.stem: path.read_text(encoding="utf-8") for path in sorted(HERE.glob("[a-z]*.py"))}
    return {
        name: text.partition('"""')[2].partition("\n")[0]
        for name, text in texts.items()
        if re.search(r"^(def main\(|main = )", text, re.MULTILINE)
    }


if __name__ == "__main__":
    sys.path[0] = str(HERE.parents[1])
    commands = import_module("tests.commands")
    sys.exit(commands.run(__doc__, campaigns(), load, sys.argv[1:]))
