"""The output of the command: safe for terminals, and correct for encodings and full disks.

Results pass through ``Output``, everything else through ``Messages``. Names of tables, files and
servers are untrusted text: a terminal must not obey it.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Protocol, TextIO

from icesql.errors import OperationalError, escape, json_escape
from icesql.storage.credentials import redact_urls

# Controls (C0 except tab and newline, DEL, C1), characters that change the direction of text or end
# a line, invisible ones, and halves of characters.
_CONTROLS: Final = (
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)


# As in prompt-toolkit; TERM is unset on Windows.
_DUMB: Final = frozenset({"dumb", "unknown"})


class Writer(Protocol):
    """A stream that takes text."""

    def write(self, text: str, /) -> object:
        """Write the text."""


def spelled_out(text: str, spell: Callable[[str], str] = escape) -> str:
    """The text with its control characters written as escapes; tabs and line ends stay."""
    if text.isascii() and text.isprintable():
        return text
    return re.sub(_CONTROLS, lambda found: spell(found[0]), text)


def one_line(text: str) -> str:
    """The text on one line, so that no part of it can look like another message."""
    return text.replace("\\", "\\\\").replace("\n", "\\n") if "\n" in text else text


class Output:
    """Standard output, for results in one format; ``stream`` None means that it is closed.

    On a terminal control characters are spelled out, elsewhere the text is exact. Characters that
    the encoding lacks are spelled out as well: json has escapes for them, table and markdown are
    for people, but in csv the value would change, so there it is an error. A failed write is an
    OperationalError, a closed pipe a BrokenPipeError.
    """

    def __init__(self, stream: TextIO | None, output_format: str = "table") -> None:
        self._stream = stream
        self._terminal = stream is not None and stream.isatty()
        self._spell = json_escape if output_format in ("json", "jsonl") else escape
        self._exact = output_format in ("csv", "tsv") and not self._terminal

    def isatty(self) -> bool:
        """Whether a terminal shows it."""
        return self._terminal

    def write(self, text: str, /) -> int:
        """Write text that may hold anything."""
        return self.styled(spelled_out(text, self._spell) if self._terminal else text)

    def takes_utf8(self) -> bool:
        """Whether ``write_bytes`` may be used: not on a terminal, nor in another encoding."""
        stream = self._open()
        encoding = (stream.encoding or "").lower().replace("-", "").replace("_", "")
        return not self._terminal and encoding == "utf8" and hasattr(stream, "buffer")

    def write_bytes(self, data: bytes) -> None:
        """Write bytes as they are, after all text so far."""
        try:
            stream = self._open()
            stream.flush()
            stream.buffer.write(data)
        except (OSError, ValueError) as error:
            raise cannot_write(error) from error

    def styled(self, text: str) -> int:
        """Write text with colours, whose cells are spelled out already."""
        try:
            return self._open().write(text)
        except UnicodeEncodeError as error:
            if self._exact:
                raise OperationalError(_cannot_encode(error)) from error
        except (OSError, ValueError) as error:
            raise cannot_write(error) from error
        encoding = self._open().encoding or "ascii"
        return self.styled("".join(self._encodable(each, encoding) for each in text))

    def flush(self) -> None:
        """Write buffered output."""
        try:
            if self._stream is not None:
                self._stream.flush()
        except (OSError, ValueError) as error:
            raise cannot_write(error) from error

    def _open(self) -> TextIO:
        if self._stream is None:
            raise OperationalError("cannot write the result: standard output is closed")
        return self._stream

    def _encodable(self, character: str, encoding: str) -> str:
        try:
            character.encode(encoding)
        except UnicodeEncodeError:
            return self._spell(character)
        return character


def cannot_write(error: OSError | ValueError) -> Exception:
    """The error for a write to standard output that failed; a closed pipe stays one."""
    if isinstance(error, BrokenPipeError):
        return error
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return OperationalError(f"cannot write the result: {reason}")


def _cannot_encode(error: UnicodeEncodeError) -> str:
    character = error.object[error.start]
    named = ascii(character) if 0xD800 <= ord(character) <= 0xDFFF else f"{character!r}"
    return (
        f"cannot write {named} in {error.encoding}, the encoding of standard output; "
        "set PYTHONIOENCODING=utf-8, or use --format json"
    )


class Messages:
    """Standard error: notes, errors and other messages, without secrets.

    Control characters are always spelled out, since a file may later be shown on a terminal. A
    message that cannot be written causes no error.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def isatty(self) -> bool:
        """Whether a terminal shows it."""
        return self._stream is not None and self._stream.isatty()

    def write(self, text: str, /) -> int:
        """Write text that may hold anything."""
        return self.styled(spelled_out(redact_urls(text)))

    def styled(self, text: str) -> int:
        """Write text with icesql's own control sequences."""
        if self._stream is not None:
            encoding = self._stream.encoding or "ascii"
            with suppress(OSError, ValueError):  # there is no place left to report it
                self._stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        return len(text)

    def flush(self) -> None:
        """Write buffered output."""
        if self._stream is not None:
            with suppress(OSError, ValueError):
                self._stream.flush()


def draws_lines(stream: TextIO | None) -> bool:
    """Whether it is a terminal that can erase a line and show colours."""
    return stream is not None and stream.isatty() and os.environ.get("TERM") not in _DUMB


def coloured(stream: TextIO | None) -> bool:
    """Whether colours are used: on a terminal that has them, unless they are switched off."""
    return draws_lines(stream) and not os.environ.get("NO_COLOR")


def to_margin() -> None:
    """Start a new line of standard error: a terminal has written ^C at the cursor."""
    if draws_lines(sys.stderr):
        styled(sys.stderr)("\r\x1b[2K")


def say(text: str) -> None:
    """One message on standard error."""
    sys.stderr.write(text + "\n")


def styled(out: Writer) -> Callable[[str], object]:
    """The function that writes coloured text to ``out``, which need not support colours."""
    return getattr(out, "styled", out.write)
