"""Access: the limits on the SQL of a connection, set once by the code that opens it."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

from icesql.config import Settings, setting_key
from icesql.errors import AccessDeniedError, ProgrammingError
from icesql.frozen import Frozen
from icesql.storage.roots import Roots

Place = str | os.PathLike[str]

_ALL: Final = frozenset(Settings.__struct_fields__)


class Access(Frozen):
    """The arguments of ``connect`` that pin a connection, checked and normalised.

    ``locked``: names of the settings that SET and RESET cannot change. ``tables_by_path`` and
    ``files``: whether SQL may name paths, or the roots below which it may; ``copy_to``: the same
    for the files that COPY writes. ``catalogs``: names that SQL may open beside the connection's
    own catalog, None for all configured ones. ``confine``: the roots that every path in a table's
    metadata must lie below; True for the table's own folder, False for no limit. ``read_only``:
    whether statements that change tables are refused. ``service``: whether SQL comes from people
    whom the owner does not know.
    """

    locked: frozenset[str] = frozenset()
    tables_by_path: bool | Roots = True
    catalogs: frozenset[str] | None = None
    files: bool | Roots = False
    copy_to: bool | Roots = False
    confine: bool | Roots = False
    read_only: bool = False
    service: bool = False

    @classmethod
    def of(
        cls,
        *,
        locked: bool | str | Iterable[str] | None = None,
        tables_by_path: bool | Place | Iterable[Place] | None = None,
        catalogs: str | Iterable[str] | None = None,
        files: bool | Place | Iterable[Place] | None = None,
        copy_to: bool | Place | Iterable[Place] | None = None,
        confine: bool | Place | Iterable[Place] | None = None,
        read_only: bool | None = None,
        service: bool = False,
    ) -> Access:
        """From the arguments of ``connect``; None is an argument that was not given.

        ``service`` changes the default of each missing argument to its strictest value; given ones
        keep their values. With any limit on reads ``read_only`` is the default. Raises
        ProgrammingError naming the argument with a bad value.
        """
        _flag("service", service)
        # A limit on reads does not imply that SQL may change tables.
        given = (locked, tables_by_path, catalogs, confine)
        limited = service or any(each is not None for each in given)
        if service and catalogs is None:
            catalogs = ()
        return cls(
            locked=_settings(service if locked is None else locked),
            tables_by_path=_roots(
                "tables_by_path", not service if tables_by_path is None else tables_by_path
            ),
            catalogs=None if catalogs is None else frozenset(_names("catalogs", catalogs)),
            files=_files("files", False if files is None else files),
            copy_to=_files("copy_to", False if copy_to is None else copy_to),
            confine=_confine(service if confine is None else confine),
            read_only=_flag("read_only", limited if read_only is None else read_only),
            service=service,
        )

    @property
    def is_open(self) -> bool:
        """Whether SQL may read all that the owner of the connection can name."""
        limited = self.service or self.catalogs is not None or self.confine is not False
        return self.tables_by_path is True and not limited

    def check_setting(self, name: str) -> None:
        """Raise AccessDeniedError for a setting that SQL cannot change, in any spelling of it."""
        key = setting_key(name)
        if key in self.locked:
            raise AccessDeniedError(f'setting "{key}" cannot be changed by SQL', argument="locked")

    def check_removal(self, *, everything: bool, named: bool) -> None:
        """Raise AccessDeniedError for a statement that chooses which files may be deleted.

        ``everything``: wherever a table's metadata names some; ``named``: below given folders.
        """
        if everything and self.confine is not False:
            raise AccessDeniedError(
                "files outside of a table's own places are not deleted", argument="confine"
            )
        if (everything or named) and self.service:
            raise AccessDeniedError(
                "SQL cannot say where files of tables are deleted", argument="service"
            )

    def allows_catalog(self, name: str) -> bool:
        """Whether SQL may open the configured catalog ``name``, in any case."""
        if self.catalogs is None:
            return True
        return name.lower() in {each.lower() for each in self.catalogs}


def of_command(given: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of ``Access.of``, with the defaults of the command where no limit is given.

    The user of the command may read and write files anyway: without a limit, SQL reads those below
    the current folder, and writes any.
    """
    made = dict(given)
    if not given["service"] and all(
        value is None
        for name, value in given.items()
        if name not in ("service", "files", "copy_to")
    ):
        if given["files"] is given["copy_to"] is None:
            made["copy_to"] = True
        if given["files"] is not False:
            # The folder is gone, its name is not text, or a root is not a folder.
            with suppress(OSError, ValueError):
                _here().encode()
                made["files"] = Roots.of([_here(), *(given["files"] or ())], option="--files")
    return made


def _here() -> str:
    """The current folder by its name in the shell, which may contain a link."""
    real, shown = os.getcwd(), os.environ.get("PWD", "")
    return shown if os.path.isabs(shown) and os.path.realpath(shown) == real else real


def _settings(locked: bool | str | Iterable[str]) -> frozenset[str]:
    if isinstance(locked, bool):
        return _ALL if locked else frozenset()
    names = _names("locked", locked)
    try:
        return frozenset(map(setting_key, names))
    except ProgrammingError as error:
        raise ProgrammingError(f"locked: {error}") from error


def _roots(argument: str, places: bool | Place | Iterable[Place]) -> bool | Roots:
    if isinstance(places, bool | Roots):
        return places
    if isinstance(places, str | os.PathLike):
        places = [places]
    if not isinstance(places, Iterable):
        raise _bad(argument, places, "True, False or a list of folders")
    try:
        roots = Roots.of(places)
    except (TypeError, ValueError) as error:
        raise ProgrammingError(f"{argument}: {error}") from error
    return roots if roots.texts else False


def _files(argument: str, places: bool | Place | Iterable[Place]) -> bool | Roots:
    roots = _roots(argument, places)
    if isinstance(roots, Roots) and roots.remote:
        verb = "reads" if argument == "files" else "writes"
        raise ProgrammingError(f"{argument}: the engine {verb} files of this machine only")
    return roots


def _confine(places: bool | Place | Iterable[Place]) -> bool | Roots:
    roots = _roots("confine", places)
    if roots is False and places is not False:
        raise ProgrammingError("confine: an empty list would let no table be read")
    return roots


def _flag(argument: str, value: bool) -> bool:
    if not isinstance(value, bool):
        raise _bad(argument, value, "True or False")
    return value


def _names(argument: str, names: str | Iterable[str]) -> Collection[str]:
    found = [names] if isinstance(names, str) else names
    if not isinstance(found, Iterable):
        raise _bad(argument, names, "a list of names")
    found = list(found)
    for name in found:
        if not isinstance(name, str) or not name.strip():
            raise _bad(argument, name, "a name")
    return found


def _bad(argument: str, value: object, wanted: str) -> ProgrammingError:
    return ProgrammingError(f"{argument}: {value!r} is not {wanted}")
