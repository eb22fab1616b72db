"""Runs the cases of the .slt files here: statements that change a catalog, and what they leave."""

from __future__ import annotations

import ast
import os
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql.commit import attempts
from tests.slt.runner import READS, Case, Record, read_cases, run_record

FILES = sorted(Path(__file__).parent.glob("*.slt"))
_SETTINGS = (
    "caches = on",
    "local_reader = 'arrow'",
    "caches = off",
    "prune = off",
    "local_reader = 'auto'",
)
_AFTER = ("RESET local_reader", "RESET caches", "RESET prune")


def runs() -> Iterator[Any]:
    """Of many lines, each has one moment of a catalog: a commit that begins again goes on as the
    first, for any statement and catalog."""
    for path in FILES:
        for case in read_cases(path):
            interrupted = any(record.kind == "meanwhile" for record in case.records)
            moments = ("_until_known", "swapped") if interrupted else ("",)
            lines = case.values or [{}]
            all_of_them = len(lines) < 3 and (interrupted or len(lines) < 2)
            all_of_them |= len(case.catalogs) * len(moments) == 1
            for line, values in enumerate(lines):
                for number, catalog in enumerate(case.catalogs):
                    for count, moment in enumerate(moments):
                        # 0, 1, 1, 0: the halves of products that lines are come to each moment.
                        if all_of_them or (line + line // 2 + number + count) % 2 == 0:
                            words = [path.stem, case.name, catalog, *values.values(), moment]
                            name = "-".join(each.strip("_") for each in words if each)
                            yield pytest.param(path.name, case, values, catalog, moment, id=name)


@contextmanager
def arguments(kind: str, folder: Path) -> Iterator[dict[str, Any]]:
    """Those of ``connect`` for an empty catalog of a kind."""
    warehouse = folder / "warehouse"
    warehouse.mkdir()
    match kind:
        case "directory":
            yield {"warehouse": str(warehouse)}
        case "sqlite":
            place = {"uri": f"sqlite:///{folder}/catalog.db", "warehouse": str(warehouse)}
            yield place | {"properties": {"init_catalog_tables": "true"}}
        case "rest":
            from tests.catalog.writes.rest_writes import WritableServer

            with closing(WritableServer(warehouse)) as server:
                yield {"uri": server.uri}
        case _:
            raise ValueError(f"no kind of catalog is called {kind}")


class Run:
    """A case on its way: connections and values by their names, and what another one will do."""

    def __init__(self, given: dict[str, Any], folder: Path, values: dict[str, str], moment: str):
        self.given, self.folder, self.moment = given, folder, moment
        self.values = values | {"folder": str(folder)}
        self.open: dict[str, Any] = {"con": icesql.connect(**given, files=True)}
        self.connection = self.open["con"]
        self.connection.execute("CREATE SCHEMA s")
        self.waiting: list[str] = []
        self.files = self.now()

    def now(self) -> set[Path]:
        return {each for each in self.folder.rglob("*") if each.is_file()}

    def filled(self, text: str) -> str:
        for name, value in self.values.items():
            text = text.replace(f"${{{name}}}", value)
        return text

    def step(self, record: Record, patch: pytest.MonkeyPatch) -> None:
        """Raises AssertionError with the difference where the answer is another."""
        sql, words = self.filled(record.sql), [*map(self.filled, record.expected)]
        match record.kind:
            case "let":
                rows = self.connection.execute(sql).fetchall()
                cells = [str(cell) for row in rows for cell in row]
                self.values |= zip(words, cells, strict=True)
            case "file":
                path = self.folder / " ".join(words)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(f"{sql}\n", encoding="utf-8")
            case "link":
                path, target = words
                (self.folder / path).symlink_to(target)
            case "age":
                then = time.time() - int(words[0]) * 86_400
                for each in self.folder.rglob("*"):
                    os.utime(each, (then, then), follow_symlinks=False)
            case "remove":
                for each in self.folder.glob(words[0]):
                    each.unlink()
            case "files":
                there = {each for each in self.folder.glob(words[0]) if not each.is_dir()}
                found = sorted(str(each.relative_to(self.folder)) for each in there)
                assert found == sql.splitlines(), found
            case "connect":
                name, *options = words
                if name not in self.open:
                    more = dict(each.split("=", 1) for each in options)
                    read = {key: _value(value) for key, value in more.items()}
                    self.open[name] = icesql.connect(**self.given | read)
                self.connection = self.open[name]
            case "meanwhile":
                self.waiting = sql.split("\n")
                own = getattr(attempts, self.moment)

                def first(*given: Any) -> Any:
                    patch.setattr(attempts, self.moment, own)
                    self.others_act()
                    return own(*given)

                patch.setattr(attempts, self.moment, first)
            case _:
                error = self.filled(record.error)
                self.answer(replace(record, sql=sql, error=error, expected=tuple(words)))

    def others_act(self) -> None:
        """Files that another connection makes or removes are not those of the statement."""
        before = self.now()
        with icesql.connect(**self.given) as other:
            for each in self.waiting:
                other.execute(each)
        self.waiting, after = [], self.now()
        self.files = self.files - (before - after) | (after - before)

    def answer(self, record: Record) -> None:
        self.files = self.now()
        run_record(self.connection, record, None)
        if record.kind == "query" and READS.match(record.sql):
            for setting in _SETTINGS:
                self.connection.execute(f"SET {setting}")
                run_record(self.connection, record, None)
            for setting in _AFTER:
                self.connection.execute(setting)
        assert not self.waiting, "the statement did not commit"
        if record.kind == "error":
            left = self.now()
            assert left <= self.files, "the statement left files"
            # What the statements of a transaction wrote goes with it.
            assert left == self.files or record.sql == "COMMIT", "the statement removed files"


def _value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


@pytest.mark.parametrize(("file", "case", "values", "catalog", "moment"), list(runs()))
def test_what_statements_leave(
    file: str,
    case: Case,
    values: dict[str, str],
    catalog: str,
    moment: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Queries by both readers, again, and with caches and pruning off; a refused statement leaves
    the files as they were."""
    with arguments(catalog, tmp_path) as given:
        run = Run(given, tmp_path, values, moment)
        try:
            for record in case.records:
                try:
                    run.step(record, monkeypatch)
                except (AssertionError, icesql.Error) as error:
                    text = f"{file}:{record.line}\n{run.filled(record.sql)}\n{error}"
                    pytest.fail(text, pytrace=False)
            assert not run.waiting, "nothing commits after the last meanwhile"
        finally:
            for each in run.open.values():
                each.close()
