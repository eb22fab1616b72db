"""``suggestions`` for prompt-toolkit, computed in a thread that nothing waits for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Iterator
from typing import Final

from prompt_toolkit.application import get_app_or_none
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from icesql.repl.completing.names import Lookup, Names
from icesql.repl.completing.suggest import suggestions, word_at
from icesql.repl.terminal import spelled_out

_STEP_SECONDS: Final = 0.05
_SHOWN_AFTER: Final = 0.4
_LONGEST_WAIT: Final = 60.0


class SqlCompleter(Completer):
    """Completions at the cursor, best first; the text behind the cursor counts as well.

    ``is_asking`` is true while completions are awaited and none has arrived.
    """

    def __init__(self, names: Names) -> None:
        self._names = names
        self.is_asking = False

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterator[Completion]:
        """The suggestions at the cursor, best first."""
        before = document.text_before_cursor
        word = word_at(before)
        for each in suggestions(before, self._names, document.text_after_cursor):
            about = spelled_out(each.about or each.kind).replace("\n", " ")
            yield Completion(each.text, -len(word), display_meta=about)

    async def get_completions_async(
        self, document: Document, event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        """The same, waiting for a slow catalog until the text changes.

        The thread is not one of the event loop's, which would wait for it when the prompt ends.
        """
        began = time.monotonic()
        shown: set[str] = set()
        try:
            while True:
                given_up = self._names.given_up
                started = time.monotonic()
                completion = Lookup(lambda: list(self.get_completions(document, event)))
                while not completion.done.is_set():
                    # A search of the cached names takes less than a step.
                    is_slow = time.monotonic() - started > _STEP_SECONDS
                    await asyncio.sleep(_STEP_SECONDS if is_slow else 0.002)
                    waited = time.monotonic() - began
                    if not _still_typed(document) or waited > _LONGEST_WAIT:
                        return
                    self._show(waited > _SHOWN_AFTER)
                for each in completion.found:
                    if each.text not in shown:
                        shown.add(each.text)
                        yield each
                if self._names.given_up == given_up:
                    break  # complete; otherwise a response may have arrived meanwhile
        finally:
            self._show(False)

    def _show(self, is_asking: bool) -> None:
        if self.is_asking != is_asking:
            self.is_asking = is_asking
            app = get_app_or_none()
            if app is not None:
                app.invalidate()


def _still_typed(document: Document) -> bool:
    app = get_app_or_none()
    return app is None or app.current_buffer.document == document
