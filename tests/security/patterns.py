"""Every regular expression of the package, and texts that make a slow one slow.

A pattern is pumped with repeated pieces of its own alphabet: samples of each part of it, of parts
that follow each other, and of each of these with one character behind it that some part of the
pattern knows. A pattern of linear time answers each text in time that grows as the text does.
"""

from __future__ import annotations

import ast
import importlib
import random
import re
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, Final

import icesql

METHODS: Final = {"match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer"}
# Where the arguments of re's functions hold flags.
_FLAGS_AT: Final = {"compile": 1, "sub": 4, "subn": 4, "split": 3}
# Modules that need optional packages which conflict with those of the tests.
_OPTIONAL: Final = ("icesql.dbt.", "icesql.sqlalchemy.superset")
# Characters of most kinds; the first one that matches represents a class of characters.
_KINDS: Final = "a1 _-.,:/@=;'\"`<>(){}[]\\%$#&*+?!|~^\n\tZ\0\x80é　"
_PIECES_AT_MOST: Final = 160


@cache
def patterns() -> tuple[dict[re.Pattern[Any], set[str]], list[tuple[str, str]]]:
    """The patterns with the methods called on them, and those that could not be evaluated.

    The latter as module and source of the argument: they are built from local values.
    """
    found: dict[re.Pattern[Any], set[str]] = {}
    unknown: list[tuple[str, str]] = []
    root = Path(icesql.__file__).parent
    for path in sorted(root.rglob("*.py")):
        name = ".".join(("icesql", *path.relative_to(root).with_suffix("").parts))
        name = name.removesuffix(".__init__")
        text = path.read_text()
        if "re." not in text and "_re" not in text:
            continue
        calls = [
            node
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in METHODS | {"compile"}
        ]
        if not calls:
            continue
        try:
            known = vars(importlib.import_module(name))
        except ModuleNotFoundError as error:
            if name.startswith(_OPTIONAL) and not str(error.name).startswith("icesql"):
                continue
            raise
        of_locals: set[str] = set()
        for call in calls:
            _note(call, known, name, found, unknown, of_locals)
        for value in known.values():
            for each in value.values() if isinstance(value, dict) else [value]:
                if isinstance(each, re.Pattern) and not found.get(each):
                    found.setdefault(each, set()).update(of_locals)
    return found, unknown


def _note(
    call: ast.Call,
    known: Mapping[str, Any],
    name: str,
    found: dict[re.Pattern[Any], set[str]],
    unknown: list[tuple[str, str]],
    of_locals: set[str],
) -> None:
    function = call.func
    assert isinstance(function, ast.Attribute)
    of_module = isinstance(function.value, ast.Name) and function.value.id == "re"
    source = call.args[0] if of_module else function.value
    try:
        value = _evaluated(source, known)
    except Exception:
        # A method of a string, or a pattern that is built from local values.
        if of_module:
            unknown.append((name, ast.unparse(source)))
        elif function.attr != "split":
            of_locals.add(function.attr)
        return
    if of_module and isinstance(value, str | bytes):
        given = [each.value for each in call.keywords if each.arg == "flags"]
        given += call.args[_FLAGS_AT.get(function.attr, 2) :][:1]
        value = re.compile(value, _evaluated(given[0], known) if given else 0)
    if isinstance(value, re.Pattern):
        found.setdefault(value, set()).update({function.attr} & METHODS)


def _evaluated(source: ast.expr, known: Mapping[str, Any]) -> Any:
    return eval(compile(ast.Expression(source), "pattern", "eval"), dict(known))


# ------------------------------------------------------------------ texts


def pieces(pattern: re.Pattern[Any]) -> list[str]:
    """Short texts that parts of a pattern match, and these with one of its characters behind."""
    from re import _parser

    text = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin1")
    tree = _parser.parse(
        text, pattern.flags & ~re.UNICODE if isinstance(pattern.pattern, bytes) else pattern.flags
    )
    parts: dict[str, None] = {}
    characters: dict[str, None] = {}
    _collect(tree, parts, characters)
    alone = list(characters)
    few = list(filter(None, parts))
    both = [a + b for a, b in product(few, alone)]
    chosen = random.Random(7)
    if len(few) > _PIECES_AT_MOST:
        few = chosen.sample(few, _PIECES_AT_MOST)
    if len(both) > _PIECES_AT_MOST:
        both = chosen.sample(both, _PIECES_AT_MOST)
    return list(dict.fromkeys([*alone, *few, *both]))


def _collect(tree: Any, parts: dict[str, None], characters: dict[str, None]) -> None:
    items = list(tree)
    samples = [_sample(each, characters) for each in items]
    for start in range(len(items)):
        for stop in range(start + 1, min(start + 6, len(items)) + 1):
            parts["".join(samples[start:stop])] = None
    parts["".join(samples)] = None
    for operation, argument in items:
        for inner in _inner(str(operation), argument):
            _collect(inner, parts, characters)


def _inner(operation: str, argument: Any) -> list[Any]:
    match operation:
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            return [argument[2]]
        case "SUBPATTERN":
            return [argument[3]]
        case "BRANCH":
            return list(argument[1])
        case "ASSERT" | "ASSERT_NOT":
            return [argument[1]]
        case "ATOMIC_GROUP":
            return [argument]
        case "GROUPREF_EXISTS":
            return [each for each in argument[1:] if each is not None]
    return []


def _sample(item: tuple[Any, Any], characters: dict[str, None]) -> str:
    operation, argument = str(item[0]), item[1]
    match operation:
        case "LITERAL":
            characters[chr(argument)] = None
            return chr(argument)
        case "NOT_LITERAL":
            return next(each for each in _KINDS if ord(each) != argument)
        case "ANY":
            return "a"
        case "IN":
            return _of_class(argument, characters)
        case "ASSERT_NOT" | "AT" | "GROUPREF":
            return ""
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            count = min(max(argument[0], 1), 40)
            return "".join(_sample(each, characters) for each in argument[2]) * count
    inner = _inner(operation, item[1])
    if operation == "ASSERT" and argument[0] > 0:
        return ""
    return "".join(_sample(each, characters) for each in inner[0]) if inner else ""


def _of_class(members: Any, characters: dict[str, None]) -> str:
    negated = str(members[0][0]) == "NEGATE"
    chosen = []
    for each in _KINDS:
        if any(_is_in(each, member) for member in members) != negated:
            chosen.append(each)
        elif negated:
            characters[each] = None
    if not chosen:
        chosen = [
            next(
                (
                    chr(a if isinstance(a, int) else a[0])
                    for op, a in members
                    if str(op) in ("LITERAL", "RANGE")
                ),
                "a",
            )
        ]
    characters[chosen[0]] = None
    return chosen[0]


def _is_in(character: str, member: tuple[Any, Any]) -> bool:
    operation, argument = str(member[0]), member[1]
    if operation == "LITERAL":
        return ord(character) == argument
    if operation == "RANGE":
        return bool(argument[0] <= ord(character) <= argument[1])
    if operation == "CATEGORY":
        letter = str(argument).removeprefix("CATEGORY_")
        kind = {"SPACE": r"\s", "DIGIT": r"\d", "WORD": r"\w"}[letter.removeprefix("NOT_")]
        return bool(re.match(kind, character)) != letter.startswith("NOT_")
    return False


# ------------------------------------------------------------------ time


class TooLong(Exception):
    """A match that exceeded its time limit."""


def seconds(pattern: re.Pattern[Any], method: str, text: str, limit: float) -> float:
    """The CPU seconds of this thread for one call; infinity beyond ``limit``.

    What else the machine does costs none of them. A match can be ended: ``re`` looks for signals.
    """
    given: Any = text if isinstance(pattern.pattern, str) else text.encode("latin1", "replace")
    empty: Any = given[:0]

    def end(*_: object) -> None:
        raise TooLong

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, limit)
    start = time.thread_time()
    try:
        with suppress(TooLong):
            call = getattr(pattern, method)
            found = call(empty, given) if method in ("sub", "subn") else call(given)
            if method == "finditer":
                for _ in found:
                    pass
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            return time.thread_time() - start
        return float("inf")
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def slow_texts(pattern: re.Pattern[Any], methods: set[str]) -> Iterator[tuple[str, str, str]]:
    """Method, repeated piece and end of the texts for which a pattern takes more than linear time."""
    # A method that searches does what others do at each place.
    kinds = methods or {"search"}
    tried = [each for each in ("findall", "search", "fullmatch", "match") if each in kinds]
    if kinds & {"sub", "subn", "split", "finditer"}:
        tried = ["findall", *[each for each in tried if each != "findall"]]
    for method in tried:
        for piece in pieces(pattern):
            for end in ("", "\0", "!"):
                if _is_slow(pattern, method, piece, end):
                    yield method, piece, end
                    return


_SHORT: Final = 2_400
_LIMIT: Final = 1.0


def _is_slow(pattern: re.Pattern[Any], method: str, piece: str, end: str) -> bool:
    def of(length: int) -> float:
        return seconds(pattern, method, piece * max(2, length // len(piece)) + end, _LIMIT)

    if of(_SHORT) < 0.0015:
        return False
    # The least of some runs, as the first one may pay for memory and caches.
    short, long = (min(of(length) for _ in range(3)) for length in (_SHORT, 6 * _SHORT))
    return long == float("inf") or long > 15 * max(short, 0.0005)
