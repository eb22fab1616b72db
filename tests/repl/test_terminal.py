"""How the command writes text to a terminal and to pipes."""

from __future__ import annotations

import io
import json

import pytest

from icesql.errors import OperationalError
from icesql.repl.terminal import Messages, Output, one_line, spelled_out

NASTY = "\x1b[2J \x9b1m \x07 \r \x7f \x00 \u202e \u2066 \u2028 \u2029 \u200f \ufeff \U000e0041"


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class _Full(io.StringIO):
    def write(self, text: str) -> int:
        raise OSError(28, "No space left on device")

    flush = None  # type: ignore[assignment]


def encoded(output_format: str, text: str, encoding: str = "latin-1") -> str:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding)
    Output(stream, output_format).write(text)
    stream.flush()
    return raw.getvalue().decode(encoding)


def controls(text: str) -> list[str]:
    return [each for each in text if each not in "\n\t" and not each.isprintable()]


def test_control_characters_are_spelled_out_and_text_is_not() -> None:
    assert spelled_out("a\x1b[2J\x9b\u202e") == r"a\x1b[2J\x9b\u202e"
    assert controls(spelled_out(NASTY)) == []
    for text in ("plain", "naïve 日本 🦆 ❤️ e\u0301 a\u200db", "two\nlines\tand a tab"):
        assert spelled_out(text) == text
    assert one_line("a\nb") == "a\\nb"


def test_json_on_a_terminal_stays_json() -> None:
    terminal = _Terminal()
    Output(terminal, "json").write('{"a": "\x9b\u202e\U000e0041"}')
    assert json.loads(terminal.getvalue()) == {"a": "\x9b\u202e\U000e0041"}


def test_what_the_encoding_lacks_is_spelled_out_or_refused() -> None:
    assert encoded("table", "é日") == r"é\u65e5"
    assert json.loads(encoded("json", '"é日🦆"')) == "é日🦆"
    with pytest.raises(OperationalError, match="in latin-1, the encoding of standard output; set"):
        encoded("csv", "é日")
    with pytest.raises(OperationalError, match="cannot write"):
        encoded("csv", "\ud800", "utf-8")


def test_a_failed_write_is_an_error_of_ours() -> None:
    with pytest.raises(
        OperationalError, match=r"^cannot write the result: No space left on device$"
    ):
        Output(_Full()).write("x")
    with pytest.raises(OperationalError, match="standard output is closed"):
        Output(None).write("x")


def test_messages_are_harmless_everywhere_and_never_fail() -> None:
    out = io.StringIO()
    Messages(out).write(f"table {NASTY} at http://h/?token=abc not found")
    assert controls(out.getvalue()) == []
    assert "token=*** not found" in out.getvalue()
    assert Messages(_Full()).write("x") == 1
    assert Messages(None).write("x") == 1
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    Messages(stream).write("é")
    stream.flush()
    assert raw.getvalue() == rb"\xe9"
