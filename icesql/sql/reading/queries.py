"""Queries of DuckDB's tree as sqlglot's nodes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Final

from msgspec import Struct
from sqlglot import exp

from icesql.sql.acceptance import Accepts, check_name
from icesql.sql.lexer import Token, tokens_in
from icesql.sql.positions import offset_of, unsupported
from icesql.sql.reading.closed import check_closed, check_words
from icesql.sql.reading.engine_tree import EngineTree, Node, SourceMap, set_engine_node
from icesql.sql.reading.sources import Source, SourceReader

_OPERATIONS: Final[dict[str, type[exp.SetOperation]]] = {
    "UNION": exp.Union,
    "INTERSECT": exp.Intersect,
    "EXCEPT": exp.Except,
}
_BY_NAME: Final = "_BY_NAME"


class ReadQuery(Struct, frozen=True):
    """The nodes of a query, what stands in its FROMs, and the tables there that are texts."""

    tree: exp.Expr
    sources: Sequence[Source]
    files: Sequence[exp.Table]


def read_query(tree: EngineTree, source_map: SourceMap, accepts: Accepts) -> ReadQuery:
    """The nodes of the one statement of ``tree``.

    ``source_map`` says where its text is from. Raises UnsupportedSqlError for what has no node
    here and for what ``accepts`` does not allow, at its place.
    """
    reader = QueryReader(tree, source_map, accepts)
    owned = check_closed(tree.statements[0], reader)
    try:
        made = reader.query_of(tree.statements[0])
    except KeyError as error:
        what = f"a tree of DuckDB's parser without {error.args[0]}"
        raise unsupported(what, None, "install a release of duckdb that icesql knows") from error
    check_words(owned, source_map, reader.unread_ctes())
    return ReadQuery(made, reader.sources, reader.files)


class QueryReader(SourceReader):
    """Reads queries."""

    def unread_ctes(self) -> list[Token]:
        """The names before ``AS (`` that are of no query of WITH that was read."""
        return [word for word, _ in self._written_ctes]

    def query_of(self, found: Node) -> exp.Expr:
        """A query with its WITH, ORDER BY and LIMIT."""
        entries = found["cte_map"]["map"]
        ctes = self._ctes(entries) if entries else None
        match found["type"]:
            case "SELECT_NODE" if self.is_values(found):
                made: exp.Expr = self._value_rows(found["from_table"])
            case "SELECT_NODE":
                made = self._select(found)
            case "SET_OPERATION_NODE":
                made = self._operation(found)
            case "RECURSIVE_CTE_NODE":
                made = exp.Union(
                    this=self._side(found["left"], exp.Union),
                    expression=self._side(found["right"]),
                    distinct=not found["union_all"],
                )
            case other:
                raise self.refuse(f"{str(other).removesuffix('_QUERY_NODE')} in a query", found)
        made = self._with_modifiers(made, found["modifiers"])
        if ctes is not None:
            made.set("with_", ctes)
        return made

    def _ctes(self, entries: Sequence[Node]) -> exp.With:
        ctes, is_recursive = [], False
        names = self._names_of_ctes([entry["key"] for entry in entries])
        for entry, (name, end) in zip(entries, names, strict=True):
            value = entry["value"]
            inner = value["query_node"]
            is_recursive = is_recursive or inner["type"] == "RECURSIVE_CTE_NODE"
            check_name(name.name, offset_of(name), views=self.accepts.views)
            alias = exp.TableAlias(this=name)
            if value["aliases"]:
                opening = -1 if end is None else self.text.find("(", end)
                after = opening + 1 if opening >= 0 else None
                alias.set("columns", self.listed(after, value["aliases"]))
            cte = exp.CTE(this=self.query_of(inner), alias=alias)
            if value["key_targets"]:
                keys = [self.item(each) for each in value["key_targets"]]
                cte.set("key_expressions", keys)
            if value["materialized"] != "CTE_MATERIALIZE_DEFAULT":
                cte.set("materialized", value["materialized"] == "CTE_MATERIALIZE_ALWAYS")
            ctes.append(cte)
        return exp.With(expressions=ctes, recursive=is_recursive or None)

    def _names_of_ctes(self, keys: Sequence[str]) -> list[tuple[exp.Identifier, int | None]]:
        """The names of one WITH, for which DuckDB has no places, and where each ends.

        Queries are read in the order of the text, so the first name is the next that was not read,
        and the others stand in the same brackets.
        """
        made, brackets = [], None
        for key in keys:
            node, end = exp.Identifier(this=key, quoted=False), None
            for index, (word, around) in enumerate(self._written_ctes):
                if word.text.lower() == key.lower() and brackets in (None, around):
                    brackets = around
                    del self._written_ctes[index]
                    self.name_placed(node, word)
                    end = word.stop
                    break
            made.append((node, end))
        return made

    @cached_property
    def _written_ctes(self) -> list[tuple[Token, int]]:
        """The names before ``AS (`` and ``(a, b) AS (``, each with the place of the bracket that it
        stands in.
        """
        if not ("with" in self.text.lower() or "window" in self.text.lower()):
            return []
        words = list(tokens_in(self.text))
        opening, around, stack = dict[int, int](), [-1] * len(words), [-1]
        for index, word in enumerate(words):
            if word.word == ")" and len(stack) > 1:
                opening[index] = stack.pop()
            around[index] = stack[-1]
            if word.word == "(":
                stack.append(index)
        found = []
        for index, word in enumerate(words):
            if word.word != "AS" or not _opens_query(words[index + 1 : index + 4]):
                continue
            place = index - 1
            if place >= 0 and words[place].word == ")":
                place = opening.get(place, 0) - 1
                if place > 1 and words[place].word == "KEY" and words[place - 1].word == "USING":
                    place -= 2
                    if words[place].word == ")":
                        place = opening.get(place, 0) - 1
            if place >= 0 and words[place].kind in ("word", "name"):
                found.append((words[place], around[place]))
        return found

    # ------------------------------------------------------------------ set operations

    def _operation(self, found: Node) -> exp.Expr:
        name = str(found["setop_type"])
        kind = _OPERATIONS[name.removesuffix(_BY_NAME)]
        first, *others = found["children"]
        made = self._side(first, kind)
        for child in others:
            part = self._side(child)
            made = kind(this=made, expression=part, distinct=not found["setop_all"])
            if name.endswith(_BY_NAME):
                made.set("by_name", True)
        return made

    def _side(self, found: Node, left_of: type[exp.SetOperation] | None = None) -> exp.Expr:
        """One side of a set operation, in parentheses where it has clauses of its own.

        ``left_of`` is the operation that stands behind it, if one does.
        """
        part = self.query_of(found)
        clauses = ("order", "limit", "offset", "with_")
        has_own = any(part.args.get(each) for each in clauses)
        if has_own or isinstance(part, exp.SetOperation):
            # INTERSECT binds closer than the others, which are grouped from the left.
            is_grouped = isinstance(part, exp.Intersect) or left_of is not exp.Intersect
            if has_own or left_of is None or not is_grouped:
                return exp.Subquery(this=part)
        return part

    def _with_modifiers(self, made: exp.Expr, modifiers: Sequence[Node]) -> exp.Expr:
        """A query with its modifiers, around which comes a subquery if one stands there twice."""
        for each in modifiers:
            match each["type"]:
                case "DISTINCT_MODIFIER":
                    on = [self.expression(part) for part in each["distinct_on_targets"]]
                    keys = exp.Tuple(expressions=on) if on else None
                    made.set("distinct", exp.Distinct(on=keys))
                case "ORDER_MODIFIER":
                    if any(made.args.get(part) is not None for part in ("order", "limit")):
                        made = exp.Subquery(this=made)
                    made.set("order", self.order(each["orders"]))
                case _:
                    if any(made.args.get(part) is not None for part in ("limit", "offset")):
                        made = exp.Subquery(this=made)
                    self._limit(made, each)
        return made

    def _limit(self, made: exp.Expr, found: Node) -> None:
        if found["limit"] is not None:
            limit = exp.Limit(expression=self.expression(found["limit"]))
            if found["limit_type"] == "PERCENTAGE":
                limit.set("limit_options", exp.LimitOptions(percent=True))
            made.set("limit", limit)
        if found["offset"] is not None:
            made.set("offset", exp.Offset(expression=self.expression(found["offset"])))

    # ------------------------------------------------------------------ SELECT

    def _select(self, found: Node) -> exp.Select:
        made = exp.Select(expressions=[self.item(each) for each in found["select_list"]])
        first, joins = self.from_of(found["from_table"])
        if first is not None:
            made.set("from_", exp.From(this=first))
        if joins:
            made.set("joins", joins)
        for name, node in (("where", exp.Where), ("having", exp.Having), ("qualify", exp.Qualify)):
            condition = found[f"{name}_clause" if name == "where" else name]
            if condition is not None:
                made.set(name, node(this=self.condition_of(condition)))
        if found["aggregate_handling"] == "FORCE_AGGREGATES":
            made.set("group", exp.Group(all=True))
        elif found["group_expressions"] or found["group_sets"]:
            made.set("group", self._group(found))
        if found["sample"]:
            made.set("sample", self.sample(found["sample"]))
        return made

    def _group(self, found: Node) -> exp.Group:
        keys, sets = found["group_expressions"], found["group_sets"]
        if sets == [[]]:
            return exp.Group(expressions=[exp.Tuple()])  # GROUP BY ()
        if len(sets) == 1 and len(sets[0]) == len(keys):
            return exp.Group(expressions=[self.expression(each) for each in keys])
        tuples = [
            exp.Tuple(expressions=[self.expression(keys[each]) for each in one]) for one in sets
        ]
        return exp.Group(grouping_sets=[exp.GroupingSets(expressions=tuples)])

    def item(self, found: Node) -> exp.Expr:
        """A column of a select list, or another expression with its alias."""
        made = super().item(found)
        set_engine_node(made.unalias(), found, self.sql_place)
        return made

    def condition_of(self, found: Node) -> exp.Expr:
        """A condition; each part of its AND knows what it was made of."""
        made = super().condition_of(found)
        parts, others = list(_flat(made)), list(_flat_found(found))
        for part, other in zip(parts, others, strict=True):
            set_engine_node(part, other, self.sql_place)
        return made


def _opens_query(words: Sequence[Token]) -> bool:
    """Whether ``(``, ``MATERIALIZED (`` or ``NOT MATERIALIZED (`` stands there."""
    for word in words:
        if word.word == "(":
            return True
        if word.word not in ("NOT", "MATERIALIZED"):
            return False
    return False


def _flat(node: exp.Expr) -> list[exp.Expr]:
    """The parts of an AND, in the order of the text."""
    parts, stack = [], [node]
    while stack:
        each = stack.pop().unnest()
        if isinstance(each, exp.And):
            stack += (each.expression, each.this)
        else:
            parts.append(each)
    return parts


def _flat_found(found: Node) -> list[Node]:
    parts, stack = [], [found]
    while stack:
        each = stack.pop()
        if each["type"] == "CONJUNCTION_AND":
            stack += reversed(each["children"])
        else:
            parts.append(each)
    return parts
