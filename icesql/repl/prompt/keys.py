"""The keys of the prompt, and the grey hint behind the cursor that says what they do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from prompt_toolkit.application import get_app
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout.processors import AfterInput

from icesql.repl.prompt.typed import is_complete, runs_by_empty_line

_GREY: Final = "fg:ansibrightblack"


def key_bindings(*, dialect: str) -> KeyBindings:
    """Enter runs what is complete; ``dialect`` as in ``is_complete``."""
    bindings = KeyBindings()

    @Condition
    def complete() -> bool:
        return is_complete(get_app().current_buffer.text, dialect=dialect)

    @bindings.add("enter", filter=complete)
    def _run(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        text = buffer.text.rstrip()  # the empty line that ran it is no part of the history
        if text != buffer.text:
            buffer.text = text
        buffer.cursor_position = len(text)
        buffer.validate_and_handle()

    return bindings


def hint(is_asking: Callable[[], bool], *, dialect: str) -> AfterInput:
    """The grey hint behind an empty line, and while a catalog is listing its names."""

    def words() -> StyleAndTextTuples:
        app = get_app()
        if app.is_done:
            return []
        text = app.current_buffer.text
        if is_asking():
            return [(_GREY, "  the catalog has not answered yet …")]
        # Long texts are not looked through on every key.
        if not text.endswith("\n") or len(text) > 10_000 or not text.strip():
            return []
        ends = runs_by_empty_line(text, dialect=dialect)
        return [(_GREY, "an empty line runs it, so does ;" if ends else "; runs it")]

    return AfterInput(words)
