"""Look up a topic or any words in the manual, which is the chapters in this folder."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from icesql.errors import ProgrammingError, similar_names
from icesql.frozen import Frozen

# ------------------------------------------------------------------ chapters and sections


INDEX: Final = "index"
_REFERENCE: Final = "reference/"
_FOLDER: Final = Path(__file__).parent
_LISTED: Final = re.compile(r"^- \[[^\]]+\]\(([\w/-]+)\.md\)", re.MULTILINE)
_HEADING: Final = re.compile(r"^(#{1,3}) (.+)$")


class Section(Frozen):
    """A heading with its text up to the next one; ``text`` begins with the heading.

    ``level`` is 1 for the opening of a chapter, whose heading is the chapter's title.
    """

    topic: str
    chapter: str
    title: str
    level: int
    text: str


@functools.cache
def chapters() -> dict[str, str]:
    """The Markdown of each chapter by its topic, in the order of the index, which comes first.

    A topic is the name of the file without its folder and ending, such as ``write``.
    """
    paths = (INDEX, *_LISTED.findall(_text(INDEX)))
    return {path.rpartition("/")[2]: _text(path) for path in paths}


@functools.cache
def reference_topics() -> frozenset[str]:
    """The chapters that are lists generated from the code."""
    paths = _LISTED.findall(chapters()[INDEX])
    return frozenset(path.removeprefix(_REFERENCE) for path in paths if _REFERENCE in path)


@functools.cache
def sections() -> tuple[Section, ...]:
    """Every section of every chapter but the index, in order."""
    found: list[Section] = []
    for topic, text in chapters().items():
        if topic != INDEX:
            found += _sections_of(topic, text)
    return tuple(found)


def chapter_title(topic: str) -> str:
    """The title of a chapter."""
    return chapters()[topic].partition("\n")[0].removeprefix("# ")


def _text(path: str) -> str:
    return (_FOLDER / f"{path}.md").read_text(encoding="utf-8")


def _sections_of(topic: str, text: str) -> list[Section]:
    found: list[tuple[re.Match[str], list[str]]] = []
    in_code = False
    for line in text.splitlines():
        in_code ^= line.startswith("```")
        if not in_code and (heading := _HEADING.match(line)):
            found.append((heading, []))
        found[-1][1].append(line)  # a chapter begins with its title
    title = found[0][0][2]
    return [
        Section(topic, title, heading[2], len(heading[1]), "\n".join(lines).strip())
        for heading, lines in found
    ]


# ------------------------------------------------------------------ lookup


_EVERYTHING: Final = "all"
_MOST_OTHERS: Final = 8
# Scores of a word in a title, in the title of the chapter, and in the text (per occurrence).
_IN_TITLE, _IN_CHAPTER, _MOST_IN_TEXT = 12, 4, 4
_OF_A_LIST: Final = 8
_SHORT: Final = 3
# Words of a question that do not describe its topic.
_EMPTY: Final = frozenset(
    {"a", "an", "and", "are", "can", "do", "does", "for", "from", "how", "i", "in", "is", "it",
     "my", "of", "on", "or", "the", "to", "what", "which", "why", "with"}
)  # fmt: skip


def manual(words: str) -> str:
    """The chapter or section of that name, else the best section for the words and others beside.

    No words give the index, ``all`` every chapter. Raises ProgrammingError if nothing is found.
    """
    wanted = " ".join(words.replace("`", "").split()).removesuffix(".md")
    name = wanted.lower()
    if not name:
        return chapters()[INDEX]
    if name == _EVERYTHING:
        return "\n\n".join(text.strip() for text in chapters().values())
    for topic, text in chapters().items():
        if name in (topic, chapter_title(topic).lower()):
            return text
    named = [each for each in sections() if _typed(each.title).lower() == name.replace("'", "")]
    if named:
        return _with_subsections(named[0]) + _others(wanted, named[1:])
    found = search(wanted)
    if entries := "\n\n".join(_entries(name)):
        return entries + _others(
            wanted, [each for each in found if each.topic not in reference_topics()]
        )
    if not found:
        raise _nothing(wanted)
    return _with_subsections(found[0]) + _others(wanted, found[1:])


def _entries(name: str) -> Iterator[str]:
    """The entries for a name in the lists of the reference, each with its heading and columns."""
    wanted = re.compile(rf"(?:\| |- )`{re.escape(name)}[`(]", re.IGNORECASE)
    for section in sections():
        if section.topic not in reference_topics():
            continue
        lines = section.text.splitlines()
        rows = [line for line in lines if wanted.match(line)]
        if rows:
            rule = next((n for n, line in enumerate(lines) if line.startswith("| ---")), None)
            head = lines[rule - 1 : rule + 1] if rule and rows[0].startswith("|") else []
            title = section.title if section.level > 1 else section.chapter
            yield "\n".join([f"## {title}", "", *head, *rows])


class _Word(Frozen):
    """A word as typed, or its plural, and the stem of its other forms."""

    whole: re.Pattern[str]
    beginning: re.Pattern[str]


def search(words: str) -> list[Section]:
    """The sections with all the words, best first; if there is none, those with the most."""
    wanted = re.findall(r"[\w$@.%-]+", words.lower())
    stems = [_word(each) for each in wanted if each not in _EMPTY] or [*map(_word, wanted)]
    scores = [(_score(each, stems, words), each) for each in sections()]
    held = max((count for (count, _), _ in scores), default=0)
    if held == 0:
        return []
    best = [(score, each) for (count, score), each in scores if count == held]
    return [each for _, each in sorted(best, key=lambda pair: -pair[0])]


def _word(text: str) -> _Word:
    whole, stem = re.escape(text), re.escape(_stem(text))
    before = r"(?<![^\W_])"
    pattern = re.compile(rf"{before}{whole}s?(?![^\W_])", re.IGNORECASE)
    # Too many words begin with the letters of a word of two or three letters.
    short = len(text) <= _SHORT
    return _Word(pattern, pattern if short else re.compile(before + stem, re.IGNORECASE))


def _score(section: Section, words: list[_Word], phrase: str) -> tuple[int, float]:
    """The number of the words that it holds, and its score."""
    count, score = 0, 0.0
    for word in words:
        in_text = len(word.beginning.findall(section.text))
        in_chapter = bool(word.beginning.search(f"{section.chapter} {section.topic}"))
        count += bool(in_text or in_chapter)
        if word.whole.search(section.title):
            score += _IN_TITLE
        elif word.beginning.search(section.title):
            score += _IN_TITLE / 2
        score += _IN_CHAPTER * in_chapter + min(in_text, _MOST_IN_TEXT)
    if len(words) > 1 and _spaced(phrase) in _spaced(section.text):
        score += _IN_TITLE
    # A long section holds any word: of two with the same words the short one is about them. The
    # lists of the reference are for look-ups of one name.
    score -= len(section.text) / 2_000 + _OF_A_LIST * (section.topic in reference_topics())
    return count, score


def _spaced(text: str) -> str:
    return re.sub(r"[\s_-]+", " ", text.lower())


def _stem(word: str) -> str:
    """The stem that a word shares with its other forms."""
    for ending in ("ies", "ing", "ed", "es", "s", "y"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word.removesuffix(ending)
    return word


def _with_subsections(section: Section) -> str:
    """Its text with its subsections, up to the next heading of its level."""
    if section.level == 1:
        return section.text
    all_of_them = sections()
    start = all_of_them.index(section)
    parts = [section.text]
    for each in all_of_them[start + 1 :]:
        if each.topic != section.topic or each.level <= section.level:
            break
        parts.append(each.text)
    return "\n\n".join(parts)


def _others(words: str, found: list[Section]) -> str:
    if not found:
        return ""
    lines = [
        f"- {each.chapter}: `icesql help {each.topic}`"
        if each.level == 1
        else f"- {each.title} ({each.chapter}): `icesql help {_typed(each.title)}`"
        for each in found[:_MOST_OTHERS]
    ]
    return f"\n\nMore about {words}:\n\n" + "\n".join(lines)


def _typed(title: str) -> str:
    """A title as typed: names of classes keep their capitals, quotes are left out for the shell."""
    return title if " " not in title else title.lower().replace("'", "").replace("`", "")


def _nothing(words: str) -> ProgrammingError:
    names = {*chapters(), *(each.title.lower() for each in sections())}
    near = similar_names(words, names)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    return ProgrammingError(
        f"the manual has nothing about {words!r}{hint} (icesql help lists the chapters)"
    )
