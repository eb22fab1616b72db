"""Cases of commits as texts: steps of writers, and below each step what it leaves.

    case <name>
    table [version=3] [by=p] [<property>=<value> …]

    append FILES                 a step, flush left, of whoever looks at the table now
    overwrite FILES -> FILES     files that go, and files that come
    rewrite FILES -> FILES       the same rows in other files
    delete DELETES [-> FILES]    deletes, and rows that come with them; ``of=a,b`` are data files that
                                 they name, ``removed=x`` older deletes that go
    where <value> [-> FILES]     the rows whose p is the value
    replace FILES                the partitions of the files
    pick <snapshot>              as ``cherry_pick``
    expire [<snapshot> …]        these snapshots, or all that may
    forget <snapshot> …          the metadata forgets them, and their files stay
    upgrade <version>            of the format
    create_ref v1 tag            as the functions of ``icesql.commit.refs``, with their arguments
    begin                        another writer looks at the table; its steps begin with "late"
    meanwhile STEP               somebody does this before the swap of the next step

Further words are options of the functions, as ``isolation=snapshot``, ``branch=audit``, ``rows=-3``
and ``summary.who=me``; ``filter=x`` are the rows whose p is x. A snapshot is ``#1`` for the first
one that was made. Files are names, with a partition's value, their rows, and bounds of p with its
number of NULLs: ``a``, ``a(x)``, ``n(null)``, ``a*125``, ``a[m..q]``, ``a*4[x..x,1]``. Of deletes
``x`` is a file of positions, ``x@a`` one of rows of a alone, ``x!a`` a deletion vector of a, and
``x:keys`` a file of equality deletes.

Below a step, indented, is what came of it:

    fails <error>: <pattern>     an error of this class; no other step fails
    nothing                      no snapshot
    swaps <number>               how often it was tried
    expired data_files=1 …       how many files of each kind went
    deleted <number>             how many files went
    live FILES                   the live files
    entries c added 2 | a deleted 1, b existing 1
                                 the entries of each manifest, with their sequence numbers
    adders <snapshot> …          the snapshots of the entries
    manifests <attribute> 225 None
                                 what the manifests have, one after the other
    summary <key>=<value> -<key> what the summary of the snapshot has, and has not
    snapshot <attribute>=<value> what the snapshot has
    file a <attribute>=<value>   what a file of the table has
    metadata <attribute>=<value> what the table has
    refs <name>=<snapshot> …     all refs
    ref v1: <attribute>=<value>  what a ref has
    snapshots <number>           how many there are
    disk FILES                   data and delete files in the table's folder

These are of the head of main; a branch or snapshot comes first, with a colon: ``live audit: a b``.
After each step there is every file that a snapshot needs, and no other list or manifest; a step
that fails leaves the table as it is, and none of its files.
"""

from __future__ import annotations

import re
import shlex
from ast import literal_eval
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from icesql import errors
from icesql.catalog.table import Table
from icesql.commit import refs
from icesql.commit.file_changes import change_table
from icesql.commit.rows import (
    commit_append,
    commit_delete_where,
    commit_overwrite,
    commit_replace_partitions,
    commit_rewrite,
    commit_row_delta,
)
from icesql.context import QueryContext
from icesql.iceberg.expressions.predicate import Leaf, Operation, Term
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.metadata.changes.updates import RemoveSnapshots, UpgradeFormatVersion
from icesql.maintain.expire import expire_snapshots
from tests.commit.tables import (
    Overtaken,
    create,
    entries,
    fake,
    fake_deletes,
    files_on_disk,
    live,
    manifests,
    told,
)

Step = tuple[str, list[str]]
_FILE = re.compile(
    r"(?P<name>\w+)(?:(?P<kind>[@!:])(?P<of>\w+))?(?:\((?P<partition>.*)\))?(?:\*(?P<rows>\d+))?"
    r"(?:\[(?P<lower>\w)\.\.(?P<upper>\w)(?:,(?P<nulls>\d+))?\])?"
)
_STATUS = ("existing", "added", "deleted")
_OF_A_START = ("overwrite", "rewrite", "delete", "where", "replace")


def read_steps(path: Path) -> list[tuple[str, list[Step]]]:
    """The cases of a file: their names and steps, each with the lines below it."""
    cases: list[tuple[str, list[Step]]] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("case "):
            cases.append((line.removeprefix("case "), []))
        elif line.startswith(" "):
            cases[-1][1][-1][1].append(line.strip())
        elif line and not line.startswith("#"):
            cases[-1][1].append((line, []))
    return cases


def p_is(value: str) -> Leaf:
    return Leaf(Operation.EQ, Term(2, "p"), value)


def files_of(table: Table, *names: str) -> list[DataFile]:
    """Live files with what they inherit, as a scan gives them."""
    found = {}
    for each in entries(table) if names else ():
        for index in range(each.count):
            if each.status[index] != 2:
                file = each.data_file(index)
                found[file.path.rpartition("/")[2].removesuffix(".parquet")] = file
    return [found[name] for name in names]


class Run:
    """A case on its way: ``ids`` are the snapshots in the order in which they were made."""

    def __init__(self, catalog: Any) -> None:
        self.catalog = catalog
        self.ids: list[int] = []
        self.waiting: list[str] = []
        self.listed: set[str] = set()

    @property
    def table(self) -> Table:
        return self.catalog.load(("ns", "t"))

    def step(self, line: str, expected: list[str]) -> None:
        """Raises AssertionError where something else comes of it."""
        verb, *words = shlex.split(line)
        match verb:
            case "table":
                given = dict(word.split("=", 1) for word in words)
                version, by = int(given.pop("version", 2)), given.pop("by", "")
                create(self.catalog, version=version, partitioned=by == "p", **given)
            case "begin":
                self.begun = self.table
            case "meanwhile":
                self.waiting.append(line.removeprefix("meanwhile "))
            case "late":
                self.commit(self.begun, words, expected)
            case _:
                self.commit(self.table, [verb, *words], expected)

    def commit(self, table: Table, words: list[str], expected: list[str]) -> None:
        actions = [partial(self.act, shlex.split(each)) for each in self.waiting]
        catalog, self.waiting = Overtaken(self.catalog, *actions), []
        before = self.table.metadata_location
        made: list[DataFile] = []
        done = None
        if expected and (fails := re.fullmatch(r"fails (\w+): (.*)", expected[0])):
            with pytest.raises(getattr(errors, fails[1]), match=fails[2]):
                self.done(catalog, table, words, made)
            assert actions or self.table.metadata_location == before
            if fails[1] != "ProgrammingError":  # then it did not begin
                assert not any(Path(each.path).exists() for each in made)
            expected = expected[1:]
        else:
            done = self.done(catalog, table, words, made)
        now = self.table
        self.ids += [each for each in now.metadata.snapshots if each not in self.ids]
        self.check_files(now)
        for each in expected:
            kind, *rest = shlex.split(each)
            match kind:
                case "nothing":
                    assert getattr(done, "snapshot_id", None) is None
                    assert now.metadata_location == before
                case "swaps":
                    assert rest == [str(catalog.swaps)]
                case "deleted":
                    assert rest == [str(len(done.files.paths) - len(done.left))]
                case "expired":
                    for kind, count in (each.split("=") for each in rest):
                        of_kind = done.files.files.get(kind.replace("_", " ").removesuffix("s"), ())
                        assert str(len(of_kind)) == count
                case _:
                    self.check(now, kind, rest)

    def act(self, words: list[str]) -> None:
        """A step of somebody else's, amid another one."""
        self.done(self.catalog, self.table, words, [])

    def done(self, catalog: Any, table: Table, words: list[str], made: list[DataFile]) -> Any:
        """What the function of a step returns; ``made`` become the files that it brings."""
        verb, *names = (each for each in words if "=" not in each)
        options = dict(each.split("=", 1) for each in words if "=" in each)
        of, removed = (options.pop(each, "").split(",") for each in ("of", "removed"))
        given = {name: self.value(text) for name, text in options.items() if "." not in name}
        if summary := {name[8:]: text for name, text in options.items() if "." in name}:
            given["query"] = QueryContext(summary=summary)
        if "filter" in given:
            given["row_filter"] = p_is(given.pop("filter"))
        if verb in _OF_A_START:
            ref = table.metadata.refs.get(given.get("branch", "main"))
            given.setdefault("start_id", ref and ref.snapshot_id)
        cut = names.index("->") if "->" in names else len(names)
        first, second = names[:cut], names[cut + 1 :]

        def new(names: list[str], *, deletes: bool = False) -> list[DataFile]:
            files = [_new_file(table, name, deletes) for name in names]
            made.extend(files)
            return files

        def old(names: list[str]) -> list[DataFile]:
            return files_of(table, *filter(None, names))

        match verb:
            case "append":
                return commit_append(catalog, table, new(first), **given)
            case "overwrite":
                given |= {"removed": old(first), "added": new(second)}
                return commit_overwrite(catalog, table, **given)
            case "rewrite":
                given |= {"removed": old(first), "added": new(second)}
                return commit_rewrite(catalog, table, **given)
            case "delete":
                deletes = new(first, deletes=True)
                paths = [each.path for each in old(of)]
                paths += [path for each in deletes if (path := each.referenced_data_file)]
                given |= {"removed": old(removed), "added": new(second), "referenced": paths}
                return commit_row_delta(
                    catalog, table, deletes=deletes, **{"command": "delete", **given}
                )
            case "where":
                given.setdefault("query", QueryContext())
                return commit_delete_where(
                    catalog, table, p_is(first[0]), added=new(second), **given
                )
            case "replace":
                given.setdefault("query", QueryContext())
                return commit_replace_partitions(catalog, table, added=new(first), **given)
            case "pick":
                return refs.cherry_pick(catalog, table, self.value(first[0]))
            case "expire":
                ids = [self.value(each) for each in first]
                given |= {"snapshot_ids": ids} if ids else {"older_than_ms": 1 << 50}
                return expire_snapshots(catalog, table, **given)
            case "forget":
                gone = RemoveSnapshots(tuple(map(self.value, first)))
                return change_table(catalog, table, lambda base: [gone])
            case "upgrade":
                version = UpgradeFormatVersion(self.value(first[0]))
                return change_table(catalog, table, lambda base: [version])
        make = getattr(refs, verb)(*map(self.value, first), **given)
        return change_table(catalog, table, make)

    def value(self, text: str) -> Any:
        """A snapshot, a literal of Python, or the text."""
        if text.startswith("#"):
            return self.ids[int(text[1:]) - 1]
        try:
            return literal_eval(text)
        except (ValueError, SyntaxError):
            return text

    def check(self, table: Table, kind: str, words: list[str]) -> None:
        metadata, place = table.metadata, "main"
        if words and words[0].endswith(":"):
            place, words = words[0][:-1], words[1:]
        snapshot = self.snapshot(table, place)
        match kind:
            case "live":
                assert live(table, snapshot) == {*words}
            case "entries":
                assert told(table, snapshot) == _entries(words)
            case "adders":
                ids = [each for found in entries(table, snapshot) for each in found.snapshot_id]
                assert ids == [*map(self.value, words)]
            case "manifests":
                found = [getattr(each, words[0]) for each in manifests(table, snapshot)]
                assert [str(getattr(each, "name", each)) for each in found] == words[1:]
            case "summary":
                absent = [each for each in words if each.startswith("-")]
                there = dict(each.split("=", 1) for each in words if each not in absent)
                there = {name: str(self.value(text)) for name, text in there.items()}
                summary = {"operation": snapshot.operation, **snapshot.summary}
                assert there.items() <= summary.items(), summary
                assert not any(each[1:] in summary for each in absent)
            case "snapshot":
                self.has(snapshot, words)
            case "file":
                self.has(files_of(table, words[0])[0], words[1:])
            case "metadata":
                self.has(metadata, words)
            case "refs":
                found = {name: each.snapshot_id for name, each in metadata.refs.items()}
                assert found == {k: self.value(v) for k, v in (each.split("=") for each in words)}
            case "ref":
                self.has(metadata.refs[place], words)
            case "snapshots":
                assert words == [str(len(metadata.snapshots))]
            case "disk":
                folder = Path(metadata.location) / "data"
                assert {each.stem for each in folder.iterdir()} == {*words}
            case _:
                raise ValueError(f"nothing is called {kind!r}")

    def snapshot(self, table: Table, place: str) -> Any:
        metadata = table.metadata
        ref = metadata.refs.get(place)
        number = self.value(place) if ref is None else ref.snapshot_id
        return metadata.snapshots.get(number)

    def check_files(self, table: Table) -> None:
        """Every file that a snapshot needs is there, and no list or manifest that none had."""
        used: set[str] = set()
        for snapshot in table.metadata.snapshots.values():
            used |= {
                snapshot.manifest_list,
                *(each.manifest_path for each in manifests(table, snapshot)),
            }
            for each in entries(table, snapshot):
                for path, status in zip(each.path, each.status, strict=True):
                    assert status == 2 or Path(path).exists(), path
        names = {each.rpartition("/")[2] for each in used}
        self.listed |= names
        assert names <= files_on_disk(table, "*.avro") <= self.listed

    def has(self, value: Any, words: list[str]) -> None:
        for name, text in (each.split("=", 1) for each in words):
            assert getattr(value, name) == self.value(text), name


def _new_file(table: Table, text: str, deletes: bool) -> DataFile:
    """A file of ten bytes, as the text describes it."""
    found = _FILE.fullmatch(text)
    assert found is not None, text
    name, rows, folder = found["name"], int(found["rows"] or 1), f"{table.metadata.location}/data"
    given: dict[str, Any] = {"rows": rows}
    if found["partition"]:
        given["partition"] = (None if found["partition"] == "null" else found["partition"],)
    if found["lower"]:
        given |= {f"{side}_bounds": {2: found[side].encode()} for side in ("lower", "upper")}
        given |= {"value_counts": {2: rows}, "null_value_counts": {2: int(found["nulls"] or 0)}}
    of = f"{folder}/{found['of']}.parquet"
    match found["kind"]:
        case "!":
            given["vector_of"] = of
        case "@":
            given["referenced_data_file"] = of
        case ":":
            given |= {"content": FileContent.EQUALITY_DELETES, "equality_ids": (1,)}
        case None if not deletes:
            name += ".parquet"
    file = (fake if name.endswith(".parquet") else fake_deletes)(name, **given)
    path = Path(folder, name)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"0123456789")
    return replace(file, path=str(path))


def _entries(words: list[str]) -> list[list[tuple[str, int, int]]]:
    return [
        [
            (name, _STATUS.index(status), int(number))
            for name, status, number in map(str.split, each.split(","))
        ]
        for each in " ".join(words).split("|")
    ]
