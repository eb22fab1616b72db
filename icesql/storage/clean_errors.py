"""Remove secrets from an error, and from all that it refers to, before it is raised further."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from icesql.errors import Error, printable
from icesql.storage.credentials import redact

# Attributes of foreign exceptions that hold a whole request, with its headers.
_REQUESTS: Final = ("request", "response", "params", "statement", "hide_parameters")


@contextmanager
def without_secrets(properties: Mapping[str, Any]) -> Iterator[None]:
    """Errors raised in the block, and the exceptions behind them, contain no secret."""
    try:
        yield
    except Exception as error:  # each is raised again once it is clean
        clean(error, properties)
        raise


def clean(
    error: BaseException,
    properties: Mapping[str, Any],
    seen: dict[int, tuple[BaseException, BaseException]] | None = None,
) -> BaseException:
    """Remove the secrets of ``properties``, and those in URLs, from an error in place.

    Message, attributes and notes of icesql's errors are rewritten. A foreign exception in its chain
    that contains a secret, or whose own chain cannot be changed, is replaced by one of the same
    class name and traceback without the secret; it is returned.
    """
    seen = {} if seen is None else seen
    if id(error) in seen:
        return seen[id(error)][1]
    cleaned = _own(error, properties)
    # Both are held: the chain lets go of the first one.
    seen[id(error)] = error, cleaned
    seen[id(cleaned)] = cleaned, cleaned
    suppressed = error.__suppress_context__
    if error.__cause__ is not None:
        cleaned.__cause__ = clean(error.__cause__, properties, seen)
    if error.__context__ is not None:
        cleaned.__context__ = clean(error.__context__, properties, seen)
    cleaned.__suppress_context__ = suppressed
    return cleaned


def spell_out(error: BaseException) -> None:
    """Spell out control characters in the message of an error of icesql, in place.

    A name in a table, or the text of an engine or server, may hold any.
    """
    if isinstance(error, Error):
        error.args = tuple(
            printable(each, lines=True) if isinstance(each, str) else each for each in error.args
        )


def _own(error: BaseException, properties: Mapping[str, Any]) -> BaseException:
    ours = isinstance(error, Error)

    def clean(text: str) -> str:
        return redact(text, properties, foreign=not ours)

    if ours:
        error.args = tuple(_cleaned(each, clean) for each in error.args)
        for name, value in list(vars(error).items()):
            vars(error)[name] = _cleaned(value, clean)
        return error
    for name in _REQUESTS:
        if name in getattr(error, "__dict__", {}):
            vars(error)[name] = None
    if (notes := getattr(error, "__notes__", None)) and _may_change(error):
        error.__notes__ = _cleaned(notes, clean)
    kind, text = type(error), _text(str, error)
    if kind.__module__.startswith("pydantic"):
        # It shows both ends of the text that it read, which may be the end of a secret.
        text = text.partition("\n")[0]
    else:
        shown = "\n".join([text, _text(repr, error), _text(repr, _attributes(error))])
        if clean(shown) == shown and _may_change(error):
            return error
    stand_in: type[Exception] = type(kind.__name__, (Exception,), {"__module__": kind.__module__})
    return stand_in(clean(text)).with_traceback(error.__traceback__)


def _may_change(error: BaseException) -> bool:
    """Whether attributes can be set: those of thrift refuse even Python's own."""
    try:
        error.__suppress_context__ = error.__suppress_context__
    except Exception:  # of whatever class
        return False
    return True


def _attributes(error: BaseException) -> dict[str, Any]:
    return {name: value for name, value in vars(error).items() if name != "__notes__"}


def _cleaned(value: Any, clean: Callable[[str], str]) -> Any:
    match value:
        case str():
            return clean(value)
        case tuple() | list():
            cleaned = [_cleaned(each, clean) for each in value]
            return tuple(cleaned) if isinstance(value, tuple) else cleaned
        case dict():
            return {key: _cleaned(each, clean) for key, each in value.items()}
        case _:
            return value


def _text(form: Callable[[Any], str], value: Any) -> str:
    try:
        return form(value)
    except Exception:  # a foreign exception that cannot be shown reveals no secret
        return ""
