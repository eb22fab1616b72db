"""Convert the queries in DuckDB's tree, and the sources in their FROM, to sqlglot's nodes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final

from sqlglot import exp

from icesql.sql.acceptance import Accepts, check_name, check_source
from icesql.sql.edited_text import Sources
from icesql.sql.keywords import CHANGES_ROWS, QUERY_WORDS, TABLE_WORDS
from icesql.sql.lexer import Token, tokens_in
from icesql.sql.positions import offset_of, unsupported
from icesql.sql.reading.calls import CallReader
from icesql.sql.reading.closed import check_closed
from icesql.sql.reading.engine_tree import EngineTree, Node, set_engine_node
from icesql.sql.show import LISTED, NO_VALUES

_OPERATIONS: Final[dict[str, type[exp.SetOperation]]] = {
    "UNION": exp.Union,
    "INTERSECT": exp.Intersect,
    "EXCEPT": exp.Except,
}
_BY_NAME: Final = "_BY_NAME"
_NAMES: Final = ("this", "db", "catalog")
_CLAUSES: Final = ("where_clause", "group_sets", "having", "qualify", "sample")
_BEGINS_QUERY: Final = frozenset(
    {*QUERY_WORDS, *TABLE_WORDS, *CHANGES_ROWS, "PIVOT", "UNPIVOT", "DESCRIBE", "SHOW"}
)
# DuckDB's parser drops the inner WITH of ``WITH a AS (…) (WITH b AS (…) SELECT …)``.
_IGNORED: Final = "DuckDB's parser ignores it; leave it out"
# Maximum distance, in characters, between LATERAL and its subquery.
_NEAR: Final = 100


def read_query(
    tree: EngineTree, sources: Sources, accepts: Accepts
) -> tuple[exp.Expr, QueryReader]:
    """Convert the one statement of ``tree`` to sqlglot's nodes; return them and their reader.

    ``sources`` are those of its text. Raises UnsupportedSqlError, with its offset, for a
    construct without a node here or one that ``accepts`` does not allow.
    """
    reader = QueryReader(tree, sources, accepts)
    check_closed(tree.statements[0], reader)
    try:
        made = reader.query_of(tree.statements[0])
    except KeyError as error:
        what = f"a tree of DuckDB's parser without {error.args[0]}"
        raise unsupported(what, None, "install a release of duckdb that icesql knows") from error
    reader.check_ctes()
    return made, reader


class QueryReader(CallReader):
    """Reads queries and the sources in their FROM."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        # Tables whose name is a string literal: FROM 'data.parquet'.
        self.files: list[exp.Table] = []

    def check_ctes(self) -> None:
        """Raise UnsupportedSqlError for a query of WITH that DuckDB's tree does not have.

        Other names before ``AS (`` that were not matched to a query are names of windows.
        """
        for name, _, first in self._written_ctes:
            if first in _BEGINS_QUERY:
                place = self.sql_offset(name.start)
                raise unsupported(f"{name.text} at this place", place, _IGNORED)

    def query_of(self, found: Node) -> exp.Expr:
        """Convert a query with its WITH, ORDER BY and LIMIT."""
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
        """Return the names of one WITH, for which DuckDB gives no offsets, and their ends.

        Queries are read in the order of the text. So the first name is the next unread one, and
        the others are in the same brackets.
        """
        made, brackets = [], None
        for key in keys:
            node, end = exp.Identifier(this=key, quoted=False), None
            for index, (word, around, _) in enumerate(self._written_ctes):
                if word.text.lower() == key.lower() and brackets in (None, around):
                    brackets = around
                    del self._written_ctes[index]
                    self.name_placed(node, word)
                    end = word.stop
                    break
            made.append((node, end))
        return made

    @cached_property
    def _written_ctes(self) -> list[tuple[Token, int, str]]:
        """The names before ``AS (`` and ``(a, b) AS (``, each with the index of the bracket that
        encloses it, and the first word in the brackets after it.
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
            if word.word != "AS":
                continue
            following = [each.word for each in words[index + 1 : index + 5]]
            while following and following[0] in ("NOT", "MATERIALIZED"):
                following.pop(0)
            if following[:1] != ["("]:
                continue
            place = index - 1
            if place >= 0 and words[place].word == ")":
                place = opening.get(place, 0) - 1
                if place > 1 and words[place].word == "KEY" and words[place - 1].word == "USING":
                    place -= 2
                    if words[place].word == ")":
                        place = opening.get(place, 0) - 1
            if place >= 0 and words[place].kind in ("word", "name"):
                found.append((words[place], around[place], following[1] if following[1:] else ""))
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
        """Return one side of a set operation, in parentheses if it has clauses of its own.

        ``left_of`` is the operation after it, if there is one.
        """
        part = self.query_of(found)
        clauses = ("order", "limit", "offset", "with_")
        has_own = any(part.args.get(each) for each in clauses)
        if has_own or isinstance(part, exp.SetOperation):
            # INTERSECT has a higher precedence than the others, which are left-associative.
            is_grouped = isinstance(part, exp.Intersect) or left_of is not exp.Intersect
            if has_own or left_of is None or not is_grouped:
                return exp.Subquery(this=part)
        return part

    def _with_modifiers(self, made: exp.Expr, modifiers: Sequence[Node]) -> exp.Expr:
        """Add modifiers to a query; a modifier that it already has wraps it in a subquery."""
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
        """Convert a column of a select list, or another expression with its alias."""
        made = self.expression(found, named=True)
        set_engine_node(made.unalias(), found, self.sql_place)
        if not found["alias"]:
            return made
        return exp.Alias(this=made, alias=exp.Identifier(this=found["alias"], quoted=True))

    def condition_of(self, found: Node) -> exp.Expr:
        """Convert a condition of WHERE, HAVING, QUALIFY or ON; link parts of AND to DuckDB's."""
        made = self.expression(found)
        parts, others = list(_flat(made)), list(_flat_found(found))
        for part, other in zip(parts, others, strict=True):
            set_engine_node(part, other, self.sql_place)
        return made

    # ------------------------------------------------------------------ FROM

    def from_of(self, found: Node) -> tuple[exp.Expr | None, list[exp.Join]]:
        """Return the first source of FROM, and the joins of the others; None without FROM."""
        if found["type"] == "EMPTY":
            return None, []
        (first, _), *others = self._chain(found)
        return first, [self._join(node, join) for node, join in others]

    # ------------------------------------------------------------------ joins

    def _chain(self, found: Node) -> list[tuple[exp.Expr, Node]]:
        """The sources in the order of the text, each with the join that adds it."""
        if found["type"] != "JOIN":
            return [(self._source(found), found)]
        left, right, implicit = found["left"], found["right"], found["is_implicit"]
        is_list = left["type"] == "JOIN" and left["is_implicit"] and not implicit
        made = [(self._bracketed(left), found)] if is_list else self._chain(left)
        if right["type"] != "JOIN":
            return [*made, (self._source(right), found)]
        if implicit and not right["is_implicit"]:
            # a, b JOIN c
            (first, _), *others = self._chain(right)
            return [*made, (first, found), *others]
        return [*made, (self._bracketed(right), found)]

    def _bracketed(self, found: Node) -> exp.Expr:
        first, joins = self.from_of(found)
        assert first is not None
        first.set("joins", joins)
        return exp.Subquery(this=first)

    def _join(self, node: exp.Expr, found: Node) -> exp.Join:
        made = exp.Join(this=node)
        kind, reference = found["join_type"], found["ref_type"]
        match kind:
            case "LEFT" | "RIGHT" | "FULL":
                made.set("side", kind)
            case "SEMI" | "ANTI":
                made.set("kind", kind)
            case "INNER":
                pass
            case _:
                raise self.refuse(f"{kind} JOIN", found)
        match reference:
            case "NATURAL" | "ASOF":
                made.set("method", reference)
            case "CROSS" if not found["is_implicit"]:
                made.set("kind", "CROSS")
            case "REGULAR" | "CROSS":
                pass
            case _:
                raise self.refuse(f"{reference} JOIN", found)
        if found["condition"]:
            made.set("on", self.condition_of(found["condition"]))
        if found["using_columns"]:
            made.set("using", self._using(found))
        return made

    def _using(self, found: Node) -> list[exp.Identifier]:
        """The column names of USING, which are in the last brackets of the join."""
        begin = self.begin(found)
        place = None
        if begin is not None:
            opening = self.text.rfind("(", begin, self.end(found))
            place = opening + 1 if opening >= 0 else None
        return self.listed(place, found["using_columns"])

    # ------------------------------------------------------------------ sources

    def _source(self, found: Node) -> exp.Expr:
        alias, begin = str(found["alias"]), self.begin(found)
        is_table = found["type"] == "BASE_TABLE"
        behind = None if begin is None or is_table else self.closing(begin)
        match found["type"]:
            case "BASE_TABLE":
                made, behind = self._table(found)
            case "SUBQUERY":
                made = self._subquery_in_from(found)
            case "EXPRESSION_LIST":
                made = self._value_rows(found)
                alias = "" if alias == "valueslist" else alias
            case "TABLE_FUNCTION":
                made = self._table_function(found)
            case "PIVOT":
                return self._pivoted(found)
            case "SHOW_REF":
                raise self.refuse(f"{found['show_type']} as a table", found)
            case other:
                raise self.refuse(f"{other} in FROM", found)
        self._name(made, alias, found.get("column_name_alias") or (), behind)
        if found["sample"]:
            made.set("sample", self.sample(found["sample"]))
        return made

    def _name(self, made: exp.Expr, alias: str, columns: Sequence[str], behind: int | None) -> None:
        """Set the alias and column names of a source that ends at ``behind``."""
        if not (alias or columns):
            return
        node = exp.TableAlias()
        after = behind
        if alias:
            name = exp.Identifier(this=alias, quoted=True)
            for word in tokens_in(self.text, behind) if behind is not None else ():
                if word.word == "AS":
                    continue
                if word.kind in ("word", "name") and word.text.lower() == alias.lower():
                    self.name_placed(name, word)
                    after = word.stop
                break
            check_name(alias, offset_of(name))
            node.set("this", name)
        if columns:
            opening = None if after is None else self.text.find("(", after)
            begin = None if opening is None or opening < 0 else opening + 1
            node.set("columns", self.listed(begin, columns))
        made.set("alias", node)

    def _table(self, found: Node) -> tuple[exp.Expr, int | None]:
        """Convert a table; also return the end of its name."""
        path, begin = found["qualified_name"]["path"], self.begin(found)
        if found["alias"] and begin is not None:
            # FROM x : t
            first = [word for word, _ in zip(tokens_in(self.text, begin), range(2), strict=False)]
            if len(first) == 2 and first[1].word == ":":
                begin = first[1].stop
        parts, end = self.names_to(begin, path)
        if len(parts) > 3:
            last: exp.Expr = parts[2]
            for part in parts[3:]:
                last = exp.Dot(this=last, expression=part)
            named: list[exp.Expr] = [*parts[:2], last]
        else:
            named = [*parts]
        made = exp.Table(**dict(zip(_NAMES, reversed(named), strict=False)))
        if "start" in parts[0].meta:
            made.meta["start"] = parts[0].meta["start"]
        if begin is not None and self.text.startswith("'", begin):
            self.files.append(made)
        return made, end

    def _subquery_in_from(self, found: Node) -> exp.Expr:
        inner = found["subquery"]["node"]
        if self.is_values(inner):
            made: exp.Expr = self._value_rows(inner["from_table"])
        else:
            made = exp.Subquery(this=self.query_of(inner))
        # DuckDB's tree omits LATERAL, which other engines need.
        begin = self.begin(found)
        if begin is not None and self._follows_lateral(begin):
            return exp.Lateral(this=made)
        return made

    def _follows_lateral(self, begin: int) -> bool:
        before = self.text[max(begin - _NEAR, 0) : begin].rstrip().removesuffix("(").rstrip()
        return before[-7:].upper() == "LATERAL" or self.begins_with(begin, "LATERAL")

    def is_values(self, found: Node) -> bool:
        """True for a bare VALUES, which DuckDB's parser wraps in a SELECT."""
        return bool(
            found["type"] == "SELECT_NODE"
            and found["from_table"]["type"] == "EXPRESSION_LIST"
            and not self.has_place(found["select_list"][0])
            and not found["modifiers"]
            and not found["cte_map"]["map"]
            and not any(found[each] for each in _CLAUSES)
        )

    def _value_rows(self, found: Node) -> exp.Values:
        rows = [
            exp.Tuple(expressions=[self.expression(each) for each in row])
            for row in found["values"]
        ]
        return exp.Values(expressions=rows)

    def _table_function(self, found: Node) -> exp.Expr:
        begin, inner = self.begin(found), found["function"]
        if inner["class"] != "FUNCTION":
            raise self.refuse("this call in FROM", found)
        places = {each: found[each] for each in ("query_location", "query_location_length")}
        function = {**inner, **places}
        if len(function["qualified_name"]["path"]) > 1:
            raise self.refuse(f"a qualified function {function['function_name']}()", found)
        if self.accepts.calls:
            check_source(function["function_name"], self.offset(found), files=self.accepts.files)
        is_numbered = found["with_ordinality"] == "WITH_ORDINALITY"
        if function["function_name"].lower() == "unnest":
            given = [self.expression(each["expression"]) for each in function["arguments"]]
            made: exp.Expr = exp.Unnest(expressions=given, offset=is_numbered or None)
            return self.placed(made, found)
        if function["function_name"].lower() == "range":
            # sqlglot has one class for range() and generate_series().
            given = self._arguments(function)
            call: exp.Expr = exp.Anonymous(this=function["function_name"], expressions=given)
            self.call_placed(call, function)
        else:
            call = self._function(function)
        made = exp.Table(this=call)
        if begin is not None:
            call.meta["stop"] = self.sql_offset(self.closing(begin) - 1) + 1
            made.meta["start"] = self.sql_offset(begin)
        if is_numbered:
            made.set("ordinality", True)
        return made

    def sample(self, found: Node) -> exp.TableSample:
        """TABLESAMPLE or USING SAMPLE."""
        size = exp.Literal.number(found["sample_size"]["value"])
        made = exp.TableSample(method=exp.Var(this=str(found["method"]).upper()))
        made.set("percent" if found["is_percentage"] else "size", size)
        if found["repeatable"]:
            made.set("seed", exp.Literal.number(found["seed"]))
        return made

    # ------------------------------------------------------------------ PIVOT

    def _pivoted(self, found: Node) -> exp.Expr:
        """Convert a source with a PIVOT or UNPIVOT after it.

        Only its text can run: the node holds the expressions in it, and its alias.
        """
        source = self._source(found["source"])
        if found["source"]["type"] == "JOIN":
            raise self.refuse("PIVOT of a JOIN", found)
        fields = []
        for each in found["pivots"]:
            if each["pivot_enum"]:
                raise self.refuse("PIVOT by the values of a type", each)
            if not (each["unpivot_names"] or each["entries"]):
                raise self.refuse(NO_VALUES, each["pivot_expressions"][0], LISTED)
            values = [self.expression(one["star_expr"], named=True) for one in each["entries"]]
            keys = [self.expression(one) for one in each["pivot_expressions"]]
            this = keys[0] if len(keys) == 1 else exp.Tuple(expressions=keys)
            fields.append(exp.In(this=this, expressions=values))
        pivot = exp.Pivot(
            expressions=[self.item(each) for each in found["aggregates"]],
            fields=fields,
            unpivot=bool(found["unpivot_names"]),
        )
        self._name(pivot, found["alias"], found["column_name_alias"], None)
        self.placed(pivot, found)
        source.set("pivots", [*(source.args.get("pivots") or ()), pivot])
        return source


def _flat(node: exp.Expr) -> list[exp.Expr]:
    """Return the operands of nested ANDs, in the order of the text."""
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
