"""``suggestions`` for prompt-toolkit, computed in a thread that nothing waits for."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import suppress
from typing import Final

from prompt_toolkit.application import get_app_or_none
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from icesql.repl.completing.names import Names
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
                completion = _Completion(self, document, event)
                while not completion.done:
                    await asyncio.sleep(_STEP_SECONDS if completion.slow else 0.002)
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


class _Completion:
    """Suggestions that are being looked for, in a daemon thread."""

    def __init__(self, completer: SqlCompleter, document: Document, event: CompleteEvent) -> None:
        self.found: list[Completion] = []
        self.done = False
        self._began = time.monotonic()
        self._completer, self._given = completer, (document, event)
        threading.Thread(target=self._run, name="icesql-completion", daemon=True).start()

    @property
    def slow(self) -> bool:
        """Whether this takes longer than a search of the cached names."""
        return time.monotonic() - self._began > _STEP_SECONDS

    def _run(self) -> None:
        try:
            with suppress(Exception):  # a prompt without suggestions is better than none
                self.found = list(self._completer.get_completions(*self._given))
        finally:
            self.done = True


def _still_typed(document: Document) -> bool:
    app = get_app_or_none()
    return app is None or app.current_buffer.document == document
