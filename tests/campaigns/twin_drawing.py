"""One function for each kind of statement: None where the table has nothing for it to change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.campaigns.twin_statements import (
    _MODES,
    _PROPERTIES,
    _VALUES,
    _WIDER,
    Column,
    Path,
    Statement,
    Table,
    Type,
    edited,
    leaves,
)

# ------------------------------------------------------------------ rows


def _target(table: Table) -> tuple[str, str]:
    """The table or a branch of it as a statement names it, and the branch."""
    if table.branches and table.chance.random() < 0.15:
        branch = table.chance.choice(table.branches)
        return f"{{t}}.branch_{branch}", branch
    return "{t}", "main"


def insert(table: Table) -> Statement | None:
    chance = table.chance
    target, branch = _target(table)

    def then() -> None:
        if branch != "main":
            table.appended = branch

    drawn = chance.random()
    if drawn < 0.7 or branch != "main" or table.rows > 60:
        rows = ", ".join(table.row() for _ in range(chance.randint(1, 8)))
        return Statement("insert", (f"INSERT INTO {target} VALUES {rows}",), then, branch)
    if drawn < 0.85:
        kept = [each for each in table.columns if each.required or chance.random() < 0.6]
        kept = kept or [table.columns[0]]
        if chance.random() < 0.5:
            chance.shuffle(kept)
        names = ", ".join(each.name for each in kept)
        rows = ", ".join(table.row(tuple(kept)) for _ in range(chance.randint(1, 4)))
        return Statement("insert columns", (f"INSERT INTO {target} ({names}) VALUES {rows}",))
    names = ", ".join("id + 1 AS id" if each.name == "id" else each.name for each in table.columns)
    text = f"INSERT INTO {target} SELECT {names} FROM {{t}} WHERE {table.condition()}"
    return Statement("insert select", (text,))


def overwrite(table: Table) -> Statement | None:
    chance = table.chance
    target, branch = _target(table)
    rows = ", ".join(table.row() for _ in range(chance.randint(1, 6)))
    drawn = chance.random()
    plain = [path[0] for form, path in table.spec if form == ".".join(path) and len(path) == 1]
    if drawn < 0.3 and plain and branch == "main":
        (column,) = (each for each in table.columns if each.name == chance.choice(plain[:1]))
        value = chance.choice(_VALUES[column.type.stem])
        rest = tuple(each for each in table.columns if each is not column)
        if column.type.name not in ("BOOLEAN", "INT", "BIGINT", "STRING", "DATE") or not rest:
            return None
        rows = ", ".join(table.row(rest) for _ in range(chance.randint(1, 4)))
        text = f"INSERT OVERWRITE {{t}} PARTITION ({column.name} = {value}) VALUES {rows}"
        return Statement("overwrite partition", (text,))
    if drawn < 0.45:
        names = ", ".join(each.name for each in table.columns)
        text = f"INSERT OVERWRITE {target} SELECT {names} FROM {target} WHERE {table.condition()}"
        return Statement("overwrite select", (text,), branch=branch)
    return Statement("overwrite", (f"INSERT OVERWRITE {target} VALUES {rows}",), branch=branch)


def set_overwrite_mode(table: Table) -> Statement | None:
    mode = "static" if table.dynamic else "dynamic"

    def then() -> None:
        table.dynamic = not table.dynamic

    return Statement("set", (f"SET spark.sql.sources.partitionOverwriteMode = {mode}",), then)


def delete(table: Table) -> Statement | None:
    target, branch = _target(table)
    condition = table.condition()
    if table.chance.random() < 0.1:
        condition = f"id IN (SELECT id FROM {{t}} WHERE {condition})"
    return Statement("delete", (f"DELETE FROM {target} WHERE {condition}",), branch=branch)


def truncate(table: Table) -> Statement | None:
    return Statement("truncate", ("TRUNCATE TABLE {t}",))


def _assignments(table: Table, owner: str = "") -> list[str]:
    chance = table.chance
    found: list[str] = []
    for each in chance.sample(list(table.columns[1:]), min(2, len(table.columns) - 1)):
        drawn = chance.random()
        if each.type.name == "STRUCT" and drawn < 0.6:
            inner = chance.choice(each.type.fields)
            found.append(f"{owner}{each.name}.{inner.name} = {table.literal(inner.type)}")
            continue
        same = [
            other.name
            for other in table.columns
            if other.type == each.type and (each.required <= other.required)
        ]
        if drawn < 0.3:
            found.append(f"{owner}{each.name} = {owner}{chance.choice(same)}")
        elif drawn < 0.45 and each.type.name in ("INT", "BIGINT"):
            found.append(f"{owner}{each.name} = {owner}{each.name} + 1")
        elif drawn < 0.6 and each.type.name == "STRING":
            found.append(f"{owner}{each.name} = concat({owner}{each.name}, 'z')")
        else:
            found.append(f"{owner}{each.name} = {table.value(each)}")
    return found[: chance.randint(1, 2)]


def update(table: Table) -> Statement | None:
    target, branch = _target(table)
    given = ", ".join(_assignments(table))
    text = f"UPDATE {target} SET {given} WHERE {table.condition()}"
    return Statement("update", (text,), branch=branch)


def merge(table: Table) -> Statement | None:
    chance = table.chance
    target, branch = _target(table)
    keys = sorted(chance.sample(range(30), chance.randint(1, 8)))
    names = ", ".join(each.name for each in table.columns)
    rows = ", ".join(
        "("
        + ", ".join([f"CAST({key} AS BIGINT)"] + [table.value(c) for c in table.columns[1:]])
        + ")"
        for key in keys
    )
    if table.columns[0].name != "id":
        return None
    source = f"(SELECT * FROM VALUES {rows} AS v({names}))"
    clauses = []
    star = chance.random() < 0.3

    def given(owner: str) -> str:
        return f" AND {table.condition(owner)}" if chance.random() < 0.5 else ""

    if chance.random() < 0.4:
        clauses.append(f"WHEN MATCHED AND {table.condition('t.')} THEN DELETE")
    if chance.random() < 0.8:
        column = chance.choice(table.columns[1:]).name
        change = chance.choice([f"t.{column} = u.{column}", *_assignments(table, "t.")[:1]])
        change = "*" if star else change
        clauses.append(f"WHEN MATCHED{given('t.')} THEN UPDATE SET {change}")
    if chance.random() < 0.7 or not clauses:
        needed = [each for each in table.columns if each.required or chance.random() < 0.7]
        needed = needed or [table.columns[0]]
        values = ", ".join(f"u.{each.name}" for each in needed)
        how = f"({', '.join(each.name for each in needed)}) VALUES ({values})"
        clauses.append(f"WHEN NOT MATCHED{given('u.')} THEN INSERT {'*' if star else how}")
    if chance.random() < 0.3:
        how = chance.choice(["DELETE", f"UPDATE SET {_assignments(table, 't.')[0]}"])
        clauses.append(f"WHEN NOT MATCHED BY SOURCE AND {table.condition('t.')} THEN {how}")
    on = "t.id = u.id" + (f" AND {table.condition('t.')}" if chance.random() < 0.2 else "")
    text = f"MERGE INTO {target} t USING {source} u ON {on} {' '.join(clauses)}"
    return Statement("merge", (text,), branch=branch)


# ------------------------------------------------------------------ columns


def _places(table: Table) -> list[Path]:
    """The table itself and its structs."""
    found: list[Path] = [()]

    def walk(columns: tuple[Column, ...], above: Path) -> None:
        for each in columns:
            if each.type.name == "STRUCT":
                found.append((*above, each.name))
                walk(each.type.fields, (*above, each.name))

    walk(table.columns, ())
    return found


def _in(table: Table, path: Path) -> tuple[Column, ...]:
    columns = table.columns
    for name in path:
        (columns,) = (each.type.fields for each in columns if each.name == name)
    return columns


def _edit(
    table: Table, path: Path, edit: Callable[[tuple[Column, ...]], tuple[Column, ...]]
) -> Callable[[], None]:
    def then() -> None:
        table.columns = edited(table.columns, path, edit)

    return then


_DEFAULTS = {"INT": "7", "BIGINT": "7", "STRING": "'seven'", "DOUBLE": "7.5", "BOOLEAN": "true"}


def add_column(table: Table) -> Statement | None:
    chance, path = table.chance, table.chance.choice(_places(table))
    if len(leaves(table.columns)) > 14:
        return None
    siblings = _in(table, path)
    column = Column(table.new_name("c"), table.random_type(1))
    index, place, default = len(siblings), "", ""
    if table.version == 3 and not path and column.type.name in _DEFAULTS and chance.random() < 0.8:
        default = f" DEFAULT {_DEFAULTS[column.type.name]}"
    elif chance.random() < 0.3:
        index = chance.randint(1, len(siblings))
        place = f" AFTER {siblings[index - 1].name}"
    name = ".".join((*path, column.name))
    return Statement(
        "add column",
        (f"ALTER TABLE {{t}} ADD COLUMN {name} {column.type.sql}{default}{place}",),
        _edit(table, path, lambda known: (*known[:index], column, *known[index:])),
    )


def drop_column(table: Table) -> Statement | None:
    path = table.chance.choice(_places(table))
    siblings = [
        each
        for each in _in(table, path)
        if (*path, each.name) != ("id",)
        and not any(
            used[: len(path) + 1] == (*path, each.name) for used in table.sources | table.ordered
        )
    ]
    if len(_in(table, path)) < 3 or not siblings:
        return None
    gone = table.chance.choice(siblings)
    return Statement(
        "drop column",
        (f"ALTER TABLE {{t}} DROP COLUMN {'.'.join((*path, gone.name))}",),
        _edit(table, path, lambda known: tuple(each for each in known if each.name != gone.name)),
    )


def rename_column(table: Table) -> Statement | None:
    path = table.chance.choice(_places(table))
    old = table.chance.choice(_in(table, path)).name
    new = table.new_name("r")
    full = (*path, old)
    if old == "id" or any(u[: len(full)] == full for u in table.sources | table.ordered):
        return None
    return Statement(
        "rename column",
        (f"ALTER TABLE {{t}} RENAME COLUMN {'.'.join(full)} TO {new}",),
        _edit(
            table, path,
            lambda known: tuple(replace(e, name=new) if e.name == old else e for e in known),
        ),
    )  # fmt: skip


def widen(table: Table) -> Statement | None:
    found = [
        (path, each)
        for path in _places(table)
        for each in _in(table, path)
        if each.type.name in _WIDER
    ]
    if not found:
        return None
    path, column = table.chance.choice(found)
    wider = Type(_WIDER[column.type.name])
    return Statement(
        "widen column",
        (f"ALTER TABLE {{t}} ALTER COLUMN {'.'.join((*path, column.name))} TYPE {wider.name}",),
        _edit(
            table, path,
            lambda known: tuple(replace(e, type=wider) if e.name == column.name else e for e in known),
        ),
    )  # fmt: skip


def drop_not_null(table: Table) -> Statement | None:
    found = [each for each in table.columns if each.required]
    if not found:
        return None
    name = table.chance.choice(found).name
    return Statement(
        "drop not null",
        (f"ALTER TABLE {{t}} ALTER COLUMN {name} DROP NOT NULL",),
        _edit(
            table, (),
            lambda known: tuple(replace(e, required=e.required and e.name != name) for e in known),
        ),
    )  # fmt: skip


def move_column(table: Table) -> Statement | None:
    path = table.chance.choice(_places(table))
    siblings = _in(table, path)
    if len(siblings) < 2:
        return None
    moved, other = table.chance.sample(list(siblings), 2)
    if "id" in (moved.name, other.name):
        return None

    def edit(known: tuple[Column, ...]) -> tuple[Column, ...]:
        rest = [each for each in known if each.name != moved.name]
        at = [each.name for each in rest].index(other.name) + 1
        return (*rest[:at], moved, *rest[at:])

    text = f"ALTER TABLE {{t}} ALTER COLUMN {'.'.join((*path, moved.name))} AFTER {other.name}"
    return Statement("move column", (text,), _edit(table, path, edit))


# ------------------------------------------------------------------ layout and properties


def add_partition_field(table: Table) -> Statement | None:
    drawn = table.random_transform()
    if drawn is None or len(table.spec) > 2:
        return None

    def then() -> None:
        table.spec.append(drawn)
        table.sources.add(drawn[1])

    return Statement("add partition", (f"ALTER TABLE {{t}} ADD PARTITION FIELD {drawn[0]}",), then)


def drop_partition_field(table: Table) -> Statement | None:
    if not table.spec:
        return None
    gone = table.chance.choice(table.spec)
    return Statement(
        "drop partition",
        (f"ALTER TABLE {{t}} DROP PARTITION FIELD {gone[0]}",),
        lambda: table.spec.remove(gone),
    )


def replace_partition_field(table: Table) -> Statement | None:
    drawn = table.random_transform()
    if not table.spec or drawn is None:
        return None
    gone = table.chance.choice(table.spec)

    def then() -> None:
        table.spec[table.spec.index(gone)] = drawn
        table.sources.add(drawn[1])

    text = f"ALTER TABLE {{t}} REPLACE PARTITION FIELD {gone[0]} WITH {drawn[0]}"
    return Statement("replace partition", (text,), then)


def write_order(table: Table) -> Statement | None:
    chance = table.chance
    path, _ = chance.choice(leaves(table.columns))
    name = ".".join(path)
    order = f"{name} {chance.choice(['ASC', 'DESC'])} NULLS {chance.choice(['FIRST', 'LAST'])}"
    text = chance.choice(
        [
            f"WRITE ORDERED BY {order}", f"WRITE LOCALLY ORDERED BY {order}, id", "WRITE UNORDERED",
            f"WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY {order}",
        ]
    )  # fmt: skip
    return Statement("write order", (f"ALTER TABLE {{t}} {text}",), lambda: table.ordered.add(path))


def properties(table: Table) -> Statement | None:
    chance = table.chance
    drawn = chance.random()
    if drawn < 0.15 and table.version < 3:
        version = table.version + 1

        def then() -> None:
            table.version = version

        text = f"ALTER TABLE {{t}} SET TBLPROPERTIES ('format-version' = '{version}')"
        return Statement("upgrade", (text,), then)
    if drawn < 0.55 and table.version > 1:
        key, value = (
            f"write.{chance.choice(['delete', 'update', 'merge'])}.mode",
            chance.choice(_MODES),
        )
    else:
        key, values = chance.choice(_PROPERTIES)
        value = chance.choice(values)
    text = f"ALTER TABLE {{t}} SET TBLPROPERTIES ('{key}' = '{value}')"
    if chance.random() < 0.1:
        text = f"ALTER TABLE {{t}} UNSET TBLPROPERTIES IF EXISTS ('{key}')"
    return Statement("properties", (text,))


# ------------------------------------------------------------------ branches, tags, history


def _snapshot(table: Table) -> str | None:
    return f"{{s{table.chance.choice(table.heads)}}}" if table.heads else None


def create_ref(table: Table) -> Statement | None:
    chance, snapshot = table.chance, _snapshot(table)
    if len(table.branches) + len(table.tags) > 4 or snapshot is None:
        return None
    kind = chance.choice(["BRANCH", "BRANCH", "TAG"])
    name = table.new_name("b" if kind == "BRANCH" else "g")
    at = f" AS OF VERSION {snapshot}" if chance.random() < 0.4 else ""
    kept = chance.choice(["", "", " RETAIN 30 DAYS"])
    known = table.branches if kind == "BRANCH" else table.tags
    text = f"ALTER TABLE {{t}} CREATE {kind} {name}{at}{kept}"
    return Statement(f"create {kind.lower()}", (text,), lambda: known.append(name))


def change_ref(table: Table) -> Statement | None:
    chance, snapshot = table.chance, _snapshot(table)
    known = chance.choice([table.branches, table.tags])
    if not known or snapshot is None:
        return None
    name, kind = chance.choice(known), "BRANCH" if known is table.branches else "TAG"
    if chance.random() < 0.5:
        text = f"ALTER TABLE {{t}} REPLACE {kind} {name} AS OF VERSION {snapshot}"
        return Statement(f"replace {kind.lower()}", (text,), branch=name)
    text = f"ALTER TABLE {{t}} DROP {kind} {name}"
    return Statement(f"drop {kind.lower()}", (text,), lambda: known.remove(name))


def move_main(table: Table) -> Statement | None:
    chance, snapshot = table.chance, _snapshot(table)
    if snapshot is None:
        return None
    name = chance.choice(["rollback_to_snapshot", "rollback_to_snapshot", "set_current_snapshot"])
    return Statement(name, (f"CALL c.system.{name}('{{n}}', {snapshot})",))


def cherrypick(table: Table) -> Statement | None:
    if table.appended not in table.branches:
        return None
    text = f"CALL c.system.cherrypick_snapshot('{{n}}', {{head:{table.appended}}})"
    return Statement("cherrypick", (text,))


def fast_forward(table: Table) -> Statement | None:
    if not table.branches:
        return None
    behind, ahead = table.chance.sample(["main", *table.branches], 2)
    text = f"CALL c.system.fast_forward('{{n}}', '{behind}', '{ahead}')"
    return Statement("fast forward", (text,), branch=behind)


def publish(table: Table) -> Statement | None:
    """A staged INSERT, or one to the branch of the session, that is published."""
    wap = table.new_name("w")
    row = table.row()
    return Statement(
        "publish",
        (
            "ALTER TABLE {t} SET TBLPROPERTIES ('write.wap.enabled' = 'true')",
            f"SET spark.wap.id = {wap}",
            f"INSERT INTO {{t}} VALUES {row}",
            "RESET spark.wap.id",
            "ALTER TABLE {t} UNSET TBLPROPERTIES ('write.wap.enabled')",
            f"CALL c.system.publish_changes('{{n}}', '{wap}')",
        ),
    )


# ------------------------------------------------------------------ maintenance


def compact(table: Table) -> Statement | None:
    chance = table.chance
    path, _ = chance.choice(leaves(table.columns))
    given = chance.choice(
        [
            ", options => map('rewrite-all', 'true')",
            ", options => map('min-input-files', '2')",
            ", options => map('delete-file-threshold', '1')",
            ", options => map('rewrite-all', 'true', 'partial-progress.enabled', 'true')",
            f", strategy => 'sort', sort_order => '{'.'.join(path)} DESC NULLS LAST', "
            "options => map('rewrite-all', 'true')",
            f", where => 'id > {chance.randint(0, 20)}', options => map('rewrite-all', 'true')",
            ", options => map('rewrite-all', 'true', 'remove-dangling-deletes', 'true')",
            "",
        ]
    )
    return Statement(
        "rewrite_data_files", (f"CALL c.system.rewrite_data_files(table => '{{n}}'{given})",)
    )


def rewrite_manifests(table: Table) -> Statement | None:
    return Statement("rewrite_manifests", ("CALL c.system.rewrite_manifests('{n}')",))


def rewrite_deletes(table: Table) -> Statement | None:
    text = (
        "CALL c.system.rewrite_position_delete_files("
        "table => '{n}', options => map('rewrite-all', 'true'))"
    )
    return Statement("rewrite_position_delete_files", (text,)) if table.version > 1 else None


def expire(table: Table) -> Statement | None:
    kept = table.chance.randint(1, 4)
    text = (
        "CALL c.system.expire_snapshots("
        f"table => '{{n}}', older_than => now(), retain_last => {kept})"
    )
    # How many snapshots are kept differs: statements that change no row make one in Java alone.
    return Statement("expire_snapshots", (text,), table.heads.clear)


DRAWN: dict[str, tuple[Callable[[Table], Statement | None], float]] = {
    "insert": (insert, 7), "overwrite": (overwrite, 2.5), "set": (set_overwrite_mode, 0.7),
    "delete": (delete, 4), "update": (update, 5), "merge": (merge, 5), "truncate": (truncate, 0.2),
    "add column": (add_column, 1.2), "drop column": (drop_column, 0.7),
    "rename column": (rename_column, 0.7), "widen": (widen, 0.8), "not null": (drop_not_null, 0.3),
    "move column": (move_column, 0.4), "add partition": (add_partition_field, 0.8),
    "drop partition": (drop_partition_field, 0.5), "replace partition": (replace_partition_field, 0.5),
    "order": (write_order, 0.7), "properties": (properties, 2), "create ref": (create_ref, 1.5),
    "change ref": (change_ref, 0.6), "move main": (move_main, 1), "cherrypick": (cherrypick, 0.7),
    "fast forward": (fast_forward, 0.7), "publish": (publish, 0.5), "compact": (compact, 2),
    "manifests": (rewrite_manifests, 0.8), "deletes": (rewrite_deletes, 0.8),
    "expire": (expire, 0.6),
}  # fmt: skip
