"""The pages of the manual that are made of the code and of ``grammar/``.

    python -m tests.manual.reference

writes them anew; ``test_reference.py`` fails where they differ from what the code says.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import re
import textwrap
import tomllib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

from tests.board.page import board
from tests.tables import read_table

ROOT = Path(__file__).parents[2]
MANUAL = ROOT / "icesql" / "manual"
FOLDER = MANUAL / "reference"

DUCKDB, SPARK, TRINO, SNOWFLAKE = "DuckDB", "Spark", "Trino", "Snowflake"


# ------------------------------------------------------------------ functions


def functions() -> str:
    """Every function of the four dialects, side by side, then the forms of each."""
    from icesql.sql.acceptance import classes
    from icesql.sql.grammar import function_names, table_rows
    from icesql.sql.grammar import functions as on_both

    named = {
        name
        for (kind, name), each in classes().items()
        if kind == "value" and each in ("safe", "volatile") and re.fullmatch(r"\w+", name)
    }
    everywhere = {row.name for row in on_both()}
    spark = {each for each in function_names("spark") if "_ignore_nulls" not in each}
    own = {
        SPARK: spark,
        TRINO: function_names("trino"),
        SNOWFLAKE: function_names("snowflake"),
    }
    rows = []
    for name in sorted(set().union(named, everywhere, *own.values())):
        in_duckdb = "also on Spark" if name in everywhere else "yes" if name in named else ""
        rows.append(
            [f"`{name}`", in_duckdb, *("yes" if name in each else "" for each in own.values())]
        )
    text = _page(
        "Functions",
        "What each dialect has; `SHOW FUNCTIONS LIKE 'date%'` lists those of the connection's own.",
        "The default dialect has DuckDB's functions. Those that are marked *also on Spark* run on the "
        "Spark engine too; each of the others is refused there by name. Spark's, Trino's and Snowflake's "
        "mean what they mean there, and what is not listed is refused by name.",
        "## Side by side",
        _table(["function", DUCKDB, SPARK, TRINO, SNOWFLAKE], rows),
    )
    for system, dialect in ((SPARK, "spark"), (TRINO, "trino"), (SNOWFLAKE, "snowflake")):
        forms: dict[str, list[str]] = {}
        for row in table_rows(dialect):
            if "_ignore_nulls" not in row.name:
                forms.setdefault(row.name, []).append(f"{row.name}({row.takes}) → {row.gives}")
        lines = [f"- `{'`, `'.join(each)}`" for _, each in sorted(forms.items())]
        rest = sorted(own[system] - forms.keys())
        text += (
            f"\n## Forms of {system}'s functions\n\n"
            + _ABOUT_FORMS[dialect]
            + "\n\n"
            + "\n".join(lines)
            + "\n"
        )
        if rest:
            text += (
                f"\nIn any form that {system} takes: "
                + ", ".join(f"`{each}`" for each in rest)
                + ".\n"
            )
    return text


_ABOUT_FORMS: Final = {
    "spark": "Capital letters are types that the arguments decide: N is a number, I an integer, M a date or\n"
    "timestamp, P a timestamp, S what has an order, the others any. `'A|B'` is one of these constants, `'*'` any\n"
    "constant; units of `timestampadd` and `timestampdiff` are words without quotes. `ntz`, `months` and `span` are\n"
    "timestamp_ntz, interval year to month and interval day to second.",
    "trino": "`T` is the type of that argument; `number` is integer, decimal or double, `fraction` a double,\n"
    "`moment` date, timestamp or timestamptz, `instant` one of the last two, `literal` a constant text;\n"
    "`local` date or timestamp, `any...` as many arguments as there are. `'A|B'` is one of these constants;\n"
    "`extract` is EXTRACT(A FROM …).",
    "snowflake": "As Trino's; a unit of time may be a word without quotes.",
}


# ------------------------------------------------------------------ settings, properties


def settings() -> str:
    """Every setting with its values, its default, its variable and its other names."""
    from icesql import config
    from icesql.query.show import _DESCRIPTIONS

    others: dict[str, list[str]] = {}
    for other, name in config._OTHER_NAMES.items():
        others.setdefault(name, []).append(f"`{other}`")
    rows = []
    for name, default in zip(config.Settings.__struct_fields__, _defaults(), strict=True):
        rows.append(
            [
                f"`{name}`",
                default,
                f"`ICESQL_{name.upper()}`",
                ", ".join(others.get(name, [])),
                _DESCRIPTIONS[name],
            ]
        )
    return _page(
        "All settings",
        "Every setting with its default, its variable and its other names.",
        "What they mean together: [Settings, caches and memory](../settings.md). `SHOW ALL` has the values of "
        "a connection. Case, `-` and `.` in a name do not matter; sizes are written like `512MB` or `1.5 GiB`, in powers "
        "of 1024.",
        _table(["setting", "default", "variable", "also", "meaning"], rows),
    )


def _defaults() -> Iterator[str]:
    """As the code writes them: what depends on the machine says so."""
    from icesql.config import Settings

    depends = {"memory_limit": "60 % of memory", "temp_directory": "the system's"}
    for name in Settings.__struct_fields__:
        value = getattr(Settings(), name)
        if name in depends:
            yield depends[name]
        elif value is None:
            yield "none"
        elif isinstance(value, bool):
            yield "on" if value else "off"
        elif isinstance(value, int) and value >= 1 << 20:
            yield f"{value >> 30} GB" if value >= 1 << 30 else f"{value >> 20} MB"
        else:
            yield str(value)


PROPERTIES: Final = read_table(__file__, "properties.tsv")


def properties() -> str:
    """The properties of tables that icesql goes by."""
    rows = [
        [
            f"`{name}{'COLUMN' if name.endswith('column.') else '…' if name.endswith('.') else ''}`",
            default,
            meaning,
        ]
        for name, default, meaning in PROPERTIES
    ]
    return _page(
        "Table properties",
        "The properties of tables that icesql goes by; all others are kept as they are.",
        "`ALTER TABLE t SET TBLPROPERTIES ('name' = 'value')` sets one, `SHOW TBLPROPERTIES t` lists them.",
        _table(["property", "default", "meaning"], rows),
    )


def properties_in_code() -> set[str]:
    """Every whole text in the package that is the name of a property, or its beginning."""
    name = re.compile(r"(?:write|read|commit|history|gc|schema|encryption)(?:\.[a-z0-9-]+)+\.?")
    return {each for each in texts_in_code() if name.fullmatch(each)}


def texts_in_code() -> set[str]:
    """Every text of the package that is written in one piece."""
    found = set()
    for source in (ROOT / "icesql").rglob("*.py"):
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
    return found


# ------------------------------------------------------------------ procedures, errors


def procedures() -> str:
    """Every procedure with its parameters and the columns of its rows."""
    from icesql.modify.procedures.procedure import find_procedure, procedure_names

    parts = []
    for each in map(find_procedure, procedure_names()):
        rows = [
            [f"`{one.name}`", one.kind, "required" if one.required else one.default]
            for one in each.parameters
        ]
        columns = ", ".join(f"`{column}`" for column in each.result.split(", "))
        parts.append(
            f"## {each.name}\n\n{each.about[0].upper()}{each.about[1:]}.\n\n{_table(['parameter', 'type', 'default'], rows)}\n\nRows: {columns}."
        )
    return _page(
        "Procedures",
        "What `CALL system.name(…)` takes and gives; `EXPLAIN CALL …` shows what one would do.",
        "When to use which: [Keep tables healthy](../maintain.md).",
        *parts,
    )


def errors() -> str:
    """The tree of errors, each with its attributes."""
    from icesql import errors as module

    classes = [
        each
        for each in vars(module).values()
        if inspect.isclass(each) and issubclass(each, module.Error) and each.__name__[0] != "_"
    ]
    rows = []
    for each in classes:
        base = next(parent for parent in each.__mro__[1:] if parent.__name__[0] != "_")
        about = " ".join((inspect.getdoc(each) or "").partition("\n\n")[0].split()).replace(
            "``", "`"
        )
        rows.append(
            [
                f"`{each.__name__}`",
                f"`{base.__name__}`",
                ", ".join(f"`{name}`" for name in _attributes(each)),
                about,
            ]
        )
    return _page(
        "Error classes",
        "Every class of error with its base and its attributes; causes and ways out are in [Errors](../errors.md).",
        "`icesql.errors` draws the tree; every class is also `icesql.NAME`.",
        _table(["error", "is a", "attributes", "means"], rows),
    )


def _attributes(error: type) -> list[str]:
    """What its own constructor keeps, and that of an inner base, without what is inner."""
    made = [
        textwrap.dedent(inspect.getsource(vars(each)["__init__"]))
        for each in error.__mro__
        if "__init__" in vars(each) and (each is error or each.__name__[0] == "_")
    ]
    found = [
        node.attr
        for source in made
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and node.attr[0] != "_"
    ]
    return [name for name in dict.fromkeys(found) if name not in ("offset", "sql")]


# ------------------------------------------------------------------ the command


def command() -> str:
    """Each command with what it takes, and every option with the commands that go by it."""
    from icesql.arguments import COMMANDS, make_parser

    commands = [
        [f"`{' '.join(['icesql', name, each.takes]).strip()}`", each.summary]
        for name, each in COMMANDS.items()
    ]
    examples = "\n".join(line for each in COMMANDS.values() for line in each.examples)
    shown = {name: _options_of(make_parser(name)) for name in COMMANDS}
    parts = [
        f"## {title}\n\n"
        + _table(
            ["option", "of", "meaning"],
            [[f"`{option}`", _commands_of(option, shown), about] for option, about in rows],
        )
        for title, rows in _groups(make_parser(None))
    ]
    return _page(
        "The command line",
        "Every command and every option of `icesql`; `icesql COMMAND --help` has those of one.",
        "How they are used: [The shell and the command](../shell.md#the-command). `icesql -c SQL` and `-f "
        "FILE` are `icesql query`, `icesql` alone on a terminal is `icesql shell`.",
        _table(["command", "does"], commands),
        f"```text\n{examples}\n```",
        *parts,
    )


def _options_of(parser: argparse.ArgumentParser) -> set[str]:
    return {option for _, rows in _groups(parser) for option, _ in rows}


def _commands_of(option: str, shown: dict[str, set[str]]) -> str:
    commands = [name for name, options in shown.items() if option in options]
    return "all" if len(commands) == len(shown) else ", ".join(commands)


def _groups(parser: argparse.ArgumentParser) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Each group of a parser's options that help shows: its title, the options and their help."""
    for group in parser._action_groups:
        rows = [
            (_spelled(each), str(each.help or "").replace("%%", "%"))
            for each in group._group_actions
            if each.help != argparse.SUPPRESS and each.option_strings
        ]
        if rows:
            title = str(group.title)
            yield f"{title[0].upper()}{title[1:]}", rows


def _spelled(action: argparse.Action) -> str:
    """An option with what it takes, such as ``-o, --output FILE``."""
    names = ", ".join(action.option_strings) or str(action.metavar or action.dest)
    if not action.option_strings or action.nargs == 0:
        return names
    value = str(action.metavar or "|".join(map(str, action.choices or ())))
    return f"{names} [{value}]" if action.nargs == "?" else f"{names} {value}"


def compatibility() -> str:
    """What it runs with, from pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    python = [
        each.rpartition(" ")[2]
        for each in project["classifiers"]
        if re.fullmatch(r"Programming Language :: Python :: 3\.\d+", each)
    ]
    extras = [
        [f"`{name}`", ", ".join(f"`{each}`" for each in wanted)]
        for name, wanted in sorted(project["optional-dependencies"].items())
        if name != "test"
    ]
    return _page(
        "Compatibility",
        "The releases of Python and of other packages that icesql runs with.",
        f"Python {', '.join(python)}. Iceberg's format versions 1, 2 and 3.",
        "PySpark's releases and what each lacks: [Clusters](../spark.md#clusters).",
        "## Packages\n\n" + "\n".join(f"- `{each}`" for each in project["dependencies"]),
        "## Extras\n\nEach brings these, as in `pip install '.[spark]'`.\n\n"
        + _table(["extra", "brings"], extras),
    )


def packages() -> str:
    """What an installation brings along, from the metadata of the packages that are here."""
    from tests.manual.packages import licence, needed, needed_by, normalized

    there = needed()
    asking = needed_by(there)
    rows = [
        [f"`{name}`", licence(each), ", ".join(asking[name])]
        for name, each in ((normalized(each.name), each) for each in there)
    ]
    return _page(
        "Packages and licences",
        "The packages that `pip install icesql` brings along, and the licence that each states.",
        "icesql is under Apache-2.0, and its wheel holds nothing of other packages. The licences are SPDX "
        "expressions. What [extras](compatibility.md#extras) bring is not listed. Releases that fit: "
        "[Compatibility](compatibility.md#packages).",
        "In a checkout, `python -m tests.manual.packages` prints the bill of materials of the environment, "
        "with versions, as CycloneDX 1.6.",
        _table(["package", "licence", "asked for by"], rows),
    )


# ------------------------------------------------------------------ SQL


def time_travel() -> str:
    """Every form of time travel from the pages of other systems, with what becomes of it."""
    rows: dict[str, list[list[str]]] = {}
    for system, dialect, form, expected in read_table(__file__, "../sql/travel_forms.tsv"):
        works = "works" if expected.isdigit() else f"refused: {expected}"
        rows.setdefault(system, []).append(
            [_code(_with_names(form)), f"`{dialect}`" if dialect else "any", works]
        )
    count = sum(map(len, rows.values()))
    working = sum(each[2] == "works" for group in rows.values() for each in group)
    parts = [
        f"## {system}\n\n{_table(['form', 'dialect', ''], group)}"
        for system, group in sorted(rows.items(), key=lambda item: item[0].lower())
    ]
    return _page(
        "Time travel by system",
        f"{count} forms from the pages of {len(rows) - 1} systems and icesql's own: {working} work, the others are refused with one that works.",
        "What they mean: [Query and time travel](../query.md). The dialect is the one in which the tests try the form.",
        *parts,
    )


_NAMES: Final = {"s": "812…", "ms": "1769860800000", "seconds": "1769860800", "time": "2026-01-31 12:00:00", "iso": "2026-01-31T12:00:00.000Z", "compact": "20260131120000000", "vienna": "2026-01-31 13:00:00"}  # fmt: skip


def _with_names(form: str) -> str:
    """A form with values such as people write."""
    form = form.replace("{path}", "/data/t").replace("{date}", "2026-01-31")
    return re.sub(r"\{([a-z]+)\d?\}", lambda found: _NAMES[found[1]], form)


def statements() -> str:
    """What the grammar accepts and refuses, from the lists beside it."""
    accepted = (ROOT / "grammar" / "accepted.sql").read_text(encoding="utf-8")
    sections = re.split(r"^-- (.+)$", accepted, flags=re.MULTILINE)[1:]
    parts = []
    for number, (title, body) in enumerate(zip(sections[::2], sections[1::2], strict=True)):
        title = "queries" if number == 0 else title
        parts.append(f"## {title[0].upper()}{title[1:]}\n\n```text\n{body.strip()}\n```")
    text = (ROOT / "grammar" / "rejected.sql").read_text(encoding="utf-8")
    refused = [
        [_code(" ".join(found[2].split()).rstrip(";")), found[1]]
        for found in re.finditer(r"^-- refused: (.+)\n((?:(?!--).*\n?)+)", text, re.MULTILINE)
    ]
    return _page(
        "Statements",
        "Statements that the default dialect accepts, and such as it refuses with what the message says.",
        "These are the lists that the tests go by; `t`, `u` and `sales.orders` are tables.",
        *parts,
        "## Refused\n\n" + _table(["statement", "the message says"], refused),
    )


# ------------------------------------------------------------------ pages


def _page(title: str, summary: str, *parts: str) -> str:
    return "\n\n".join([f"# {title}", *map(_wrapped, (summary, *parts))]) + "\n"


def _wrapped(part: str) -> str:
    if part[0] in "|#`-" or "\n" in part:
        return part
    return textwrap.fill(part, 100, break_long_words=False, break_on_hyphens=False)


def _code(text: str) -> str:
    """A span of code, which may hold backquotes."""
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def _table(head: list[str], rows: Iterable[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |" for line in lines
    )


def llms() -> str:
    """What a program that reads is told of the manual: each chapter with its summary."""
    from icesql.manual.lookup import INDEX, chapters

    lines = [
        "# icesql",
        "",
        "> SQL with time travel on Apache Iceberg tables: query, write and maintain them from Python or a shell, without a JVM.",
        "",
        "`icesql help all` prints the whole manual as Markdown, `icesql help WORDS` what it says about them.",
        "",
        "## Chapters",
        "",
    ]
    reference = {path.stem for path in FOLDER.glob("*.md")}
    for topic, text in chapters().items():
        if topic != INDEX:
            title, _, rest = text.partition("\n\n")
            summary = " ".join(rest.partition("\n\n")[0].split())
            place = f"reference/{topic}" if topic in reference else topic
            lines.append(f"- [{title.removeprefix('# ')}]({place}.md): {summary}")
    return "\n".join(lines) + "\n"


PAGES: Final[dict[str, Callable[[], str]]] = {
    "statements.md": statements,
    "time-travel.md": time_travel,
    "functions.md": functions,
    "all-settings.md": settings,
    "properties.md": properties,
    "procedures.md": procedures,
    "exceptions.md": errors,
    "command.md": command,
    "compatibility.md": compatibility,
    "packages.md": packages,
    "board.md": board,
}


def main() -> None:
    """Write every page."""
    FOLDER.mkdir(exist_ok=True)
    for name, make in PAGES.items():
        (FOLDER / name).write_text(make(), encoding="utf-8")
    (MANUAL / "llms.txt").write_text(llms(), encoding="utf-8")


if __name__ == "__main__":
    main()
