"""No code from data: what icesql evaluates, unpickles or hands to an engine as text is listed here.

The walk reads the syntax tree of every module. A new finding fails until the table lists it with
the reason why it cannot run any text of a table, row, path, message or statement.
"""

from __future__ import annotations

import ast
import functools
import re
from collections import defaultdict
from pathlib import Path

import pytest

import icesql
from tests.rows import rows_of
from tests.tables import read_table

PACKAGE = Path(icesql.__file__).parent

# Whatever makes code, objects of any class or processes out of bytes and texts.
_DANGEROUS = re.compile(
    r"""^(
        (builtins\.)?(eval|exec|compile|__import__|globals|locals|__builtins__|breakpoint)
      | builtins\.\*
      | (_?pickle|cPickle|cloudpickle|dill|joblib|jsonpickle|marshal|shelve|copyreg)\.
            (?!dumps?$|dump$|HIGHEST_PROTOCOL$|DEFAULT_PROTOCOL$|\w*Error$|\*?$).*
      | (_?pickle|cPickle|cloudpickle|dill|joblib|jsonpickle|marshal|shelve|copyreg)\.\*
      | (ruamel\.)?yaml\.(?!safe_load|SafeLoader|CSafeLoader|YAMLError).*
      | importlib(\.(import_module|reload|util\..*|machinery\..*|\*))
      | (runpy|code|codeop|zipimport|imp|pty|ctypes|cffi|subprocess|multiprocessing)(\..*)?
      | os\.(system|popen|exec\w*|spawn\w*|posix_spawn\w*|fork\w*|startfile|\*)
      | sys\.(modules|meta_path|path_hooks|_getframe)
      | types\.(FunctionType|CodeType|LambdaType)
      | (numpy|np)\.(load|fromfile|memmap) | (pandas|pd)\.(read_pickle|eval)
      | pyarrow\.(deserialize\w*|PyExtensionType|UnknownExtensionType)
      | asyncio\.create_subprocess\w* | logging\.config(\..*)?
    )$""",
    re.VERBOSE,
)
_BUILTINS = {
    "eval", "exec", "compile", "__import__", "globals", "locals", "__builtins__", "breakpoint",
}  # fmt: skip
# Methods whose first argument is SQL to some engine; sqlglot's generators share the name sql().
_SINKS = {"execute", "executemany", "executescript", "sql", "query", "from_query", "selectExpr"}
# sqlglot's builders that parse a text they are given.
_PARSERS = re.compile(
    r"(^|\.)(parse_one|maybe_parse|condition|to_table|table_|DataType\.build|sqlglot\.parse)$"
)
_WORDS = re.compile(
    r"\b(SELECT|FROM|WHERE|JOIN|UNION|STRUCT|MAP|ARRAY|SET|INSERT|UPDATE|DELETE|DESCRIBE|SHOW|CASE"
    r"|PRAGMA|WHEN|CAST|IF|AS|AND|ON|READ_PARQUET|INTERVAL|DECIMAL|RAISE_ERROR|CONCAT|COALESCE|END"
    r"|GREATEST|LIMIT|OVER|NOT|NULL|FILTER|ROUND|LN|SLICE|DATE_\w+|TRUNC|MAKE_\w+|WITHIN)\b"
)
_ERRORS = re.compile(r"(Error|Exception|refuse|refuse_rows|NotConstant)$")


class Walk(ast.NodeVisitor):
    """The findings of one module, each with the function around it."""

    def __init__(self, source: str) -> None:
        self.found: dict[str, set[tuple[str, str]]] = defaultdict(set)
        self._names: dict[str, str] = {}
        self._texts: set[str] = set()
        self._inside: list[str] = []
        tree = ast.parse(source)
        for node in ast.walk(tree):
            self._import(node)
        for statement in tree.body:
            # Names of the module's constant strings.
            match statement:
                case (
                    ast.Assign(targets=[ast.Name(id=name)], value=value)
                    | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
                ) if _is_constant(value):
                    self._texts.add(name)
        self.visit(tree)

    def _import(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            for each in node.names:
                name = each.asname or each.name.partition(".")[0]
                self._names[name] = each.name if each.asname else name
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for each in node.names:
                self._names[each.asname or each.name] = f"{node.module}.{each.name}"

    def _dotted(self, node: ast.AST) -> str:
        """The dotted name of an expression, with the module from which it was imported."""
        match node:
            case ast.Name(id=name):
                return self._names.get(name, name)
            case ast.Attribute(value=value, attr=attr):
                inner = self._dotted(value)
                return f"{inner}.{attr}" if inner else ""
        return ""

    def _note(self, what: str, detail: str) -> None:
        self.found[what].add((".".join(self._inside), detail))

    # ------------------------------------------------------------------ visits

    def _scope(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        self._inside.append(node.name)
        self.generic_visit(node)
        self._inside.pop()

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = _scope

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for each in node.names:
            self._check(f"{node.module}.{each.name}")

    def visit_Import(self, node: ast.Import) -> None:
        for each in node.names:
            self._check(each.name)

    def visit_Name(self, node: ast.Name) -> None:
        self._check(self._dotted(node), imported=node.id in self._names)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self._check(self._dotted(node))
        self.generic_visit(node)

    def _check(self, name: str, *, imported: bool = True) -> None:
        if _DANGEROUS.match(name) and (imported or name in _BUILTINS):
            self._note("code", name.removeprefix("builtins."))

    def visit_Raise(self, node: ast.Raise) -> None:
        """Skip raise statements: error messages do not reach an engine."""
        for call in ast.walk(node):
            if isinstance(call, ast.Call) and not isinstance(call.func, ast.Name):
                self.visit(call.func)

    def visit_Call(self, node: ast.Call) -> None:
        name = self._dotted(node.func)
        if name == "getattr" and node.args:
            owner = self._dotted(node.args[0])
            is_module = owner in self._names.values() and owner.split(".")[-1].islower()
            if is_module or owner == "__builtins__":
                self._note("code", f"getattr of {owner}")
        if isinstance(node.func, ast.Attribute) and node.args:
            method, first = node.func.attr, node.args[0]
            if method in _SINKS and not self._is_fixed(first):
                self._note("sink", method)
            if method in ("format", "format_map") and not self._is_fixed(node.func.value):
                self._note("code", "format of a text that is not in the source")
        if _PARSERS.search(name) and node.args and not self._is_fixed(node.args[0]):
            self._note("parser", name.rsplit(".", 1)[-1])
        if _ERRORS.search(name):
            return
        self._built(node)
        self.generic_visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        self._built(node)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        self._built(node)
        self.generic_visit(node)

    def _built(self, node: ast.expr) -> None:
        """SQL in the source with gaps in it."""
        match node:
            case ast.JoinedStr(values=values):
                fixed = [each.value for each in values if isinstance(each, ast.Constant)]
                has_gaps = len(fixed) < len(values)
            case ast.BinOp(left=left, op=ast.Add() | ast.Mod(), right=right):
                fixed = [e.value for e in (left, right) if isinstance(e, ast.Constant)]
                has_gaps = len(fixed) == 1
            case ast.Call(
                func=ast.Attribute(value=ast.Constant(value=text), attr="join" | "format")
            ):
                fixed, has_gaps = [text], True
            case _:
                return
        texts = " ".join(each for each in fixed if isinstance(each, str))
        if has_gaps and _WORDS.search(texts.replace("read_parquet", "READ_PARQUET")):
            self._note("built", "")

    def _is_fixed(self, node: ast.expr) -> bool:
        return _is_constant(node) or (isinstance(node, ast.Name) and node.id in self._texts)


def _is_constant(node: ast.expr) -> bool:
    match node:
        case ast.Constant():
            return True
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _is_constant(left) and _is_constant(right)
        case ast.JoinedStr(values=values):
            return all(isinstance(each, ast.Constant) for each in values)
    return False


@functools.cache
def modules() -> tuple[tuple[str, Walk], ...]:
    """(path below icesql/, findings) of all modules."""
    return tuple(
        (path.relative_to(PACKAGE).as_posix(), Walk(path.read_text(encoding="utf-8")))
        for path in sorted(PACKAGE.rglob("*.py"))
    )


def findings(what: str, *rooms: str) -> set[str]:
    """``"file.py: function"`` or ``"file.py: function: detail"`` of each; folders may be moved."""
    return {
        ": ".join(filter(None, (place.rsplit("/", 1)[-1], function or "<module>", detail)))
        for place, walk in modules()
        if not rooms or place.startswith(rooms)
        for function, detail in walk.found[what]
    }


# ---------------------------------------------------------------------------- what is left, and why

LISTED = read_table(__file__, "no_code_from_data.tsv")


@pytest.mark.parametrize(
    ("what", "rooms"),
    [
        ("code", ()),
        ("sink", ()),
        ("parser", ()),
        # Where SQL for another system is made: DuckDB, Spark, SQLite.
        ("built", ("engine/", "datasource/", "catalog/", "storage/", "read/", "scan/")),
    ],
)
def test_what_could_run_data_is_listed_with_a_reason(what: str, rooms: tuple[str, ...]) -> None:
    found = findings(what, *rooms)
    listed = {place: reason for kind, place, reason in LISTED if kind == what}
    assert found - set(listed) == set(), "new: make it safe, and say in the table why it is"
    assert set(listed) - found == set(), "gone: take it out of the table"
    assert all(listed.values())


@rows_of(__file__, "walked_sources.tsv", "what", "source")
def test_the_walk_sees_it(what: str, source: str) -> None:
    found = Walk(source.replace("⏎", "\n")).found
    assert found[what] if what != "nothing" else not any(found.values())
