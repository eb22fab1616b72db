"""Only what is there now is changed: not while a session reads tables as they were."""

from __future__ import annotations

from icesql.config import Settings
from icesql.errors import ProgrammingError


def check_present(settings: Settings) -> None:
    """Raise ProgrammingError where the session reads tables as they were, or at a ref of theirs.

    What would be changed is not what it sees.
    """
    if not settings.snapshot_pinned:
        return
    pinned = {"SNAPSHOT TIME": settings.snapshot_time, "snapshot_ref": settings.snapshot_ref}
    names = [name for name, value in pinned.items() if value is not None]
    at = ", ".join(f"{name} = '{pinned[name]}'" for name in names)
    branch = " (a branch is written to as table.branch_x)" if "snapshot_ref" in names else ""
    raise ProgrammingError(
        f"this session reads tables as they were ({at}); "
        f"{' and '.join(f'RESET {name}' for name in names)} before rows are changed or tables "
        f"altered{branch}; CREATE TABLE new_name AS SELECT … saves rows of then"
    )
