"""Random columns and changes of them, as JSON fields: what a schema may be, and become."""

from __future__ import annotations

from dataclasses import dataclass

from tests.writer.partition_values import transforms_of
from tests.writer.types import decimal_of
from tests.writer.values import SIMPLE_TYPES, pool, to_json

CHANGES = ("add", "add", "drop", "rename", "move", "widen", "widen", "relax")
EVERYTHING = (
    *SIMPLE_TYPES, "int", "float", "date", "decimal(9, 2)", "decimal(20, 0)", "decimal(35, 10)",
    "decimal(4, 4)", "fixed[5]", "timestamp",
)  # fmt: skip
NEW = (*EVERYTHING, "timestamp_ns", "timestamptz_ns")


@dataclass(frozen=True)
class Change:
    """One change of a schema: its kind, where, of which column, and what it becomes.

    ``path`` names the structs above; ``detail`` is a field, a name or a type, ``after`` a neighbour.
    """

    kind: str
    path: tuple
    name: str
    detail: object = None
    after: str | None = None


class Columns:
    """Draws fields and changes them; ids count up, ``defaults`` are the values of new columns.

    ``kinds`` are primitive types, by default all that the version has.
    """

    def __init__(self, chance, version, kinds=None):
        self.chance, self.version, self._kinds = chance, version, kinds
        self._next_id, self._gone_names, self.defaults = 0, [], {}

    # ------------------------------------------------------------------ new ones

    def field(self, name, *, first, depth=0):
        """A new one; ``first``: of a table that has no rows yet, and may require values."""
        chance = self.chance
        field = {"id": self._take_id(), "name": name, "required": False, "type": self._type(depth)}
        if isinstance(field["type"], str) and field["type"] != "unknown":
            if first and chance.random() < 0.2:
                field["required"] = True
            elif not first and self.version >= 3 and chance.random() < 0.5:
                self._give_default(field, depth)
        return field

    def _give_default(self, field, depth):
        if self._kinds is not None and (depth or field["type"] not in SIMPLE_DEFAULTS):
            return  # what ALTER TABLE of others cannot say
        finite = [
            each for each in pool(field["type"]) if not isinstance(each, float) or each - each == 0
        ]
        value = self.chance.choice(finite)
        field["initial-default"] = field["write-default"] = to_json(field["type"], value)
        field["required"] = self._kinds is None and self.chance.random() < 0.3
        self.defaults[field["id"]] = value

    def _take_id(self):
        self._next_id += 1
        return self._next_id

    def _type(self, depth):
        chance = self.chance
        if depth < 2 and chance.random() < (0.25 if depth == 0 else 0.2):
            match chance.choice(("struct", "struct", "list", "map")):
                case "struct":
                    fields = [
                        self.field(f"s{n}", first=False, depth=depth + 1)
                        for n in range(chance.randint(1, 3))
                    ]
                    return {"type": "struct", "fields": fields}
                case "list":
                    element = {"element-id": self._take_id(), "element-required": False}
                    return {"type": "list", **element, "element": self._type(depth + 1)}
                case _:
                    keys = ("string", "int", "date") if self._kinds is None else ("string",)
                    return {
                        "type": "map", "key-id": self._take_id(), "key": chance.choice(keys),
                        "value-id": self._take_id(), "value-required": False,
                        "value": self._type(depth + 1),
                    }  # fmt: skip
        kinds = self._kinds or (NEW if self.version >= 3 else EVERYTHING)
        if self._kinds is None and self.version >= 3 and depth == 0:
            kinds = (*kinds, "unknown")
        return chance.choice(kinds)

    def transform(self, fields):
        """A column that can be a partition source, as its path, and a transform of it."""
        paths = [path for path in primitive_paths(fields) if path[-1]["type"] != "unknown"]
        if not paths:
            return None
        path = self.chance.choice(paths)
        known = transforms_of(path[-1]["type"])
        # Mostly what only some types have.
        rare = [each for each in known if each not in ("identity", "void")]
        return path, self.chance.choice(rare if rare and self.chance.random() < 0.5 else known)

    # ------------------------------------------------------------------ changes

    def change(self, fields, *, kept=frozenset(), sources=frozenset(), structs_alone=False):
        """Change the fields in one way, and tell it; None where that is not to be had.

        ``kept`` are ids that stay, ``sources`` those of partitions, whose type is not another.
        """
        path, level = self.chance.choice([*levels(fields, structs_alone)])
        self._kept, self._sources = kept, sources
        kind = self.chance.choice(CHANGES)
        found = getattr(self, f"_{kind}")(level)
        return None if found is None else Change(kind, path, *found)

    def _add(self, level):
        name = f"c{self._next_id}"
        free = self._free_names(level)
        if free and self.chance.random() < 0.4:
            name = self.chance.choice(free)
        at = self.chance.randint(0, len(level))
        field = self.field(name, first=False)
        level.insert(at, field)
        return name, field, level[at - 1]["name"] if at else None

    def _drop(self, level):
        free = [each for each in level if not all_ids(each) & self._kept]
        if len(level) < 2 or not free:
            return None
        chosen = self.chance.choice(free)
        level.remove(chosen)
        self._gone_names.append(chosen["name"])
        return (chosen["name"],)

    def _rename(self, level):
        chosen = self.chance.choice(level)
        before, self._next_id = chosen["name"], self._next_id + 1
        # Sometimes a name that another column had.
        chosen["name"] = self.chance.choice([f"r{self._next_id}", *self._free_names(level)])
        self._gone_names.append(before)
        return before, chosen["name"]

    def _free_names(self, level):
        names = {each["name"] for each in level}
        return [each for each in self._gone_names if each not in names]

    def _move(self, level):
        moved = level.pop(self.chance.randrange(len(level)))
        at = self.chance.randint(0, len(level))
        level.insert(at, moved)
        return moved["name"], None, level[at - 1]["name"] if at else None

    def _widen(self, level):
        # First a column that can be widened, wherever it stands.
        for each in self.chance.sample(level, len(level)):
            wider = self._wider(
                each["type"], each["id"] in self._sources or "initial-default" in each
            )
            if wider is not None:
                each["type"] = wider
                return each["name"], wider
        return None

    def _wider(self, type_, is_source):
        if isinstance(type_, dict):
            for part in ("element", "value") if self._kinds is None else ():
                inner = self._wider(type_[part], False) if part in type_ else None
                if inner is not None:
                    return {**type_, part: inner}
            return None
        if decimal_of(type_):
            precision, scale = decimal_of(type_)
            return f"decimal({precision + 3}, {scale})" if precision <= 35 else None
        if type_ == "date" and self.version >= 3 and not is_source and self._kinds is None:
            return "timestamp"
        if type_ == "unknown":
            return self.chance.choice(("int", "string"))
        return {"int": "long", "float": "double"}.get(type_)

    def _relax(self, level):
        chosen = self.chance.choice(level)
        if self._kinds is not None and not chosen.get("required"):
            return None
        chosen["required"] = False
        return (chosen["name"],)


SIMPLE_DEFAULTS = ("int", "long", "string", "double", "boolean")


def levels(fields, structs_alone=False, above=()):
    """Lists of fields that can change, by the names above: the top, those of structs at any depth."""
    yield above, fields
    for each in fields:
        type_, path = each["type"], (*above, each["name"])
        while isinstance(type_, dict) and type_["type"] != "struct" and not structs_alone:
            part = "element" if "element" in type_ else "value"
            type_, path = type_[part], (*path, part)
        if isinstance(type_, dict) and type_["type"] == "struct":
            yield from levels(type_["fields"], structs_alone, path)


def all_ids(field):
    """The id of a field and those of the structs in it."""
    found = {field["id"]}
    if isinstance(field["type"], dict) and field["type"]["type"] == "struct":
        for each in field["type"]["fields"]:
            found |= all_ids(each)
    return found


def primitive_paths(fields):
    """The paths to primitives that are in no list or map."""
    for each in fields:
        if isinstance(each["type"], str):
            yield [each]
        elif each["type"]["type"] == "struct":
            for path in primitive_paths(each["type"]["fields"]):
                yield [each, *path]
