"""``suggestions`` for prompt-toolkit."""

from __future__ import annotations

from collections.abc import Iterator

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from icesql.repl.completing.names import Names
from icesql.repl.completing.suggest import suggestions, word_at


class SqlCompleter(Completer):
    """What may come at the cursor, best first; the text behind the cursor is read as well."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterator[Completion]:
        """The suggestions at the cursor, best first."""
        before = document.text_before_cursor
        word = word_at(before)
        for each in suggestions(before, self._names, document.text_after_cursor):
            yield Completion(each.text, -len(word), display_meta=each.about or each.kind)
