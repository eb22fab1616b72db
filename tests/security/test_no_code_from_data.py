"""No code from data: what icesql evaluates, unpickles or hands to an engine as text is listed here.

The walk reads the syntax tree of every module. Something new that it finds fails until it stands in
a list below with the reason why no text of a table, row, path, message or statement can run by it.
"""

from __future__ import annotations

import ast
import functools
import re
from collections import defaultdict
from pathlib import Path

import pytest

import icesql

PACKAGE = Path(icesql.__file__).parent

# Whatever makes code, objects of any class or processes out of bytes and texts.
_DANGEROUS = re.compile(
    r"""^(
        (builtins\.)?(eval|exec|compile|__import__|globals|locals|__builtins__|breakpoint)
      | builtins\.\*
      | (_?pickle|cPickle|cloudpickle|dill|joblib|jsonpickle|marshal|shelve|copyreg)\.
            (?!dumps?$|dump$|HIGHEST_PROTOCOL$|DEFAULT_PROTOCOL$|\w*Error$|\*?$).*
      | (_?pickle|cPickle|cloudpickle|dill|joblib|jsonpickle|marshal|shelve|copyreg)\.\*
      | (ruamel\.)?yaml\.(?!safe_load|SafeLoader|CSafeLoader|YAMLError).*
      | importlib(\.(import_module|reload|util\..*|machinery\..*|\*))
      | (runpy|code|codeop|zipimport|imp|pty|ctypes|cffi|subprocess|multiprocessing)(\..*)?
      | os\.(system|popen|exec\w*|spawn\w*|posix_spawn\w*|fork\w*|startfile|\*)
      | sys\.(modules|meta_path|path_hooks|_getframe)
      | types\.(FunctionType|CodeType|LambdaType)
      | (numpy|np)\.(load|fromfile|memmap) | (pandas|pd)\.(read_pickle|eval)
      | pyarrow\.(deserialize\w*|PyExtensionType|UnknownExtensionType)
      | asyncio\.create_subprocess\w* | logging\.config(\..*)?
    )$""",
    re.VERBOSE,
)
_BUILTINS = {
    "eval", "exec", "compile", "__import__", "globals", "locals", "__builtins__", "breakpoint",
}  # fmt: skip
# Methods whose first argument is SQL to some engine; sqlglot's generators share the name sql().
_SINKS = {"execute", "executemany", "executescript", "sql", "query", "from_query", "selectExpr"}
# sqlglot's builders that parse a text they are given.
_PARSERS = re.compile(
    r"(^|\.)(parse_one|maybe_parse|condition|to_table|table_|DataType\.build|sqlglot\.parse)$"
)
_WORDS = re.compile(
    r"\b(SELECT|FROM|WHERE|JOIN|UNION|STRUCT|MAP|ARRAY|SET|INSERT|UPDATE|DELETE|DESCRIBE|SHOW|CASE"
    r"|PRAGMA|WHEN|CAST|IF|AS|AND|ON|READ_PARQUET|INTERVAL|DECIMAL|RAISE_ERROR|CONCAT|COALESCE|END"
    r"|GREATEST|LIMIT|OVER|NOT|NULL|FILTER|ROUND|LN|SLICE|DATE_\w+|TRUNC|MAKE_\w+|WITHIN)\b"
)
_ERRORS = re.compile(r"(Error|Exception|refuse|refuse_rows|NotConstant)$")


class Walk(ast.NodeVisitor):
    """The findings of one module, each with the function around it."""

    def __init__(self, source: str) -> None:
        self.found: dict[str, set[tuple[str, str]]] = defaultdict(set)
        self._names: dict[str, str] = {}
        self._texts: set[str] = set()
        self._inside: list[str] = []
        tree = ast.parse(source)
        for node in ast.walk(tree):
            self._import(node)
        for statement in tree.body:
            # Names of texts that stand in the module once and for all.
            match statement:
                case (
                    ast.Assign(targets=[ast.Name(id=name)], value=value)
                    | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
                ) if _is_constant(value):
                    self._texts.add(name)
        self.visit(tree)

    def _import(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            for each in node.names:
                name = each.asname or each.name.partition(".")[0]
                self._names[name] = each.name if each.asname else name
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for each in node.names:
                self._names[each.asname or each.name] = f"{node.module}.{each.name}"

    def _dotted(self, node: ast.AST) -> str:
        """What a name stands for, by the module it was imported from."""
        match node:
            case ast.Name(id=name):
                return self._names.get(name, name)
            case ast.Attribute(value=value, attr=attr):
                inner = self._dotted(value)
                return f"{inner}.{attr}" if inner else ""
        return ""

    def _note(self, what: str, detail: str) -> None:
        self.found[what].add((".".join(self._inside), detail))

    # ------------------------------------------------------------------ visits

    def _scope(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        self._inside.append(node.name)
        self.generic_visit(node)
        self._inside.pop()

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = _scope

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for each in node.names:
            self._check(f"{node.module}.{each.name}")

    def visit_Import(self, node: ast.Import) -> None:
        for each in node.names:
            self._check(each.name)

    def visit_Name(self, node: ast.Name) -> None:
        self._check(self._dotted(node), imported=node.id in self._names)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self._check(self._dotted(node))
        self.generic_visit(node)

    def _check(self, name: str, *, imported: bool = True) -> None:
        if _DANGEROUS.match(name) and (imported or name in _BUILTINS):
            self._note("code", name.removeprefix("builtins."))

    def visit_Raise(self, node: ast.Raise) -> None:
        """Messages are not handed to an engine."""
        for call in ast.walk(node):
            if isinstance(call, ast.Call) and not isinstance(call.func, ast.Name):
                self.visit(call.func)

    def visit_Call(self, node: ast.Call) -> None:
        name = self._dotted(node.func)
        if name == "getattr" and node.args:
            owner = self._dotted(node.args[0])
            is_module = owner in self._names.values() and owner.split(".")[-1].islower()
            if is_module or owner == "__builtins__":
                self._note("code", f"getattr of {owner}")
        if isinstance(node.func, ast.Attribute) and node.args:
            method, first = node.func.attr, node.args[0]
            if method in _SINKS and not self._is_fixed(first):
                self._note("sink", method)
            if method in ("format", "format_map") and not self._is_fixed(node.func.value):
                self._note("code", "format of a text that is not in the source")
        if _PARSERS.search(name) and node.args and not self._is_fixed(node.args[0]):
            self._note("parser", name.rsplit(".", 1)[-1])
        if _ERRORS.search(name):
            return
        self._built(node)
        self.generic_visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        self._built(node)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        self._built(node)
        self.generic_visit(node)

    def _built(self, node: ast.expr) -> None:
        """SQL in the source with gaps in it."""
        match node:
            case ast.JoinedStr(values=values):
                fixed = [each.value for each in values if isinstance(each, ast.Constant)]
                has_gaps = len(fixed) < len(values)
            case ast.BinOp(left=left, op=ast.Add() | ast.Mod(), right=right):
                fixed = [e.value for e in (left, right) if isinstance(e, ast.Constant)]
                has_gaps = len(fixed) == 1
            case ast.Call(
                func=ast.Attribute(value=ast.Constant(value=text), attr="join" | "format")
            ):
                fixed, has_gaps = [text], True
            case _:
                return
        texts = " ".join(each for each in fixed if isinstance(each, str))
        if has_gaps and _WORDS.search(texts.replace("read_parquet", "READ_PARQUET")):
            self._note("built", "")

    def _is_fixed(self, node: ast.expr) -> bool:
        return _is_constant(node) or (isinstance(node, ast.Name) and node.id in self._texts)


def _is_constant(node: ast.expr) -> bool:
    match node:
        case ast.Constant():
            return True
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _is_constant(left) and _is_constant(right)
        case ast.JoinedStr(values=values):
            return all(isinstance(each, ast.Constant) for each in values)
    return False


@functools.cache
def modules() -> tuple[tuple[str, Walk], ...]:
    """(path below icesql/, findings) of all modules."""
    return tuple(
        (path.relative_to(PACKAGE).as_posix(), Walk(path.read_text(encoding="utf-8")))
        for path in sorted(PACKAGE.rglob("*.py"))
    )


def findings(what: str, *rooms: str) -> set[str]:
    """``"file.py: function"`` or ``"file.py: function: detail"`` of each; folders may be moved."""
    return {
        ": ".join(filter(None, (place.rsplit("/", 1)[-1], function or "<module>", detail)))
        for place, walk in modules()
        if not rooms or place.startswith(rooms)
        for function, detail in walk.found[what]
    }


# ---------------------------------------------------------------------------- what is left, and why

CODE = {
    "run_command.py: <module>: subprocess": "what the owner of the shell types, on the owner's machine; "
    "a restricted shell refuses it: test_a_restricted_shell_reaches_no_files_and_commands",
    "run_command.py: run_command: subprocess": "the same",
    "run_command.py: run_command: subprocess.run": "the same",
    "run_command.py: _edit: subprocess": "$EDITOR of the owner, whose arguments are words, not a shell's",
    "run_command.py: _edit: subprocess.run": "the same",
    "installation.py: <module>: subprocess": "java -version, from JAVA_HOME or the path",
    "installation.py: _java: subprocess": "the same",
    "installation.py: _java: subprocess.TimeoutExpired": "the same",
    "installation.py: _java: subprocess.run": "the same",
    "pager.py: <module>: subprocess": "$PAGER of the owner; rows are its input, never its words",
    "pager.py: page: subprocess": "the same",
    "pager.py: page: subprocess.PIPE": "the same",
    "pager.py: page: subprocess.Popen": "the same",
    "walk_source.py: WalkLines.compile: exec": "the source holds words of this file and numbers "
    "alone, whatever the schema: test_the_source_of_a_manifest_walk_holds_no_text_of_its_schema",
    "walk_source.py: WalkLines.compile: compile": "the same",
    "worker.py: unpack: pickle.loads": "jobs and columns that the driver packed itself; they travel "
    "as rows and partitions that Spark keeps to itself, and no message, file or row reaches it",
    "__main__.py: run: sys.modules": "whether the shell was loaded, by a name in the source",
    "engine_name.py: <module>: sys.modules": "the version of icesql, by the name of its package",
    "key_partitions.py: _Column.array: numpy.memmap": "numbers of a spilled file, never objects",
    "pyiceberg.py: <module>: importlib.util.find_spec": "to look for a package, not to import it",
    "pyiceberg.py: _with_driver: importlib.util.find_spec": "two names that stand in the function",
    "profiles.py: <module>: importlib.util.find_spec": "to look for a package, not to import it",
    "profiles.py: profile_credentials: importlib.util.find_spec": "a name that stands in it",
    "configuration.py: _content: yaml.load": "with BaseLoader, which makes texts, lists and dicts",
    "configuration.py: _content: yaml.BaseLoader": "the loader that knows no tags",
    "configuration.py: _content: yaml.scan": "tokens, to refuse aliases before anything is loaded",
    "configuration.py: _content: yaml.AliasToken": "the same",
    "configuration.py: _content: yaml.AnchorToken": "the same",
    "connection.py: _close_all: sys.modules": "whether transactions were loaded, by a name in the source",
    "registered.py: name_rows: sys._getframe": "whether the caller has a variable of a table's name, "
    "for the advice of an error; its value is looked at by its type alone",
    "expressions.py: <module>: getattr of sqlglot.exp": "one name that stands in the source",
    "signals.py: unwind_on_signals: getattr of signal": "two names that stand in the function",
    "required.py: require: importlib.import_module": "names of modules that stand in the calls",
    "procedure.py: <module>: importlib.import_module": "the same as the next",
    "procedure.py: find_procedure: importlib.import_module": "a file's name in one folder of the "
    "package: whoever calls it looks for the name among these first",
    **dict.fromkeys(
        (
            "__init__.py: <module>: importlib.import_module",
            "__init__.py: __getattr__: importlib.import_module",
            "__init__.py: __getattr__: globals",
            "__init__.py: __dir__: globals",
        ),
        "icesql's own modules, by the public names that are listed there",
    ),
    "request_log.py: log_request: sys.modules": "whether logging was imported, by its name",
    "result_rows.py: are_many: sys.modules": "whether a library was imported, by its name",
    "query_log.py: log_scans: sys.modules": "whether logging was imported, by its name",
    "connection.py: Connection.__init__: sys.modules": "whether IPython runs this, by its name",
    "progress.py: cell_progress: sys.modules": "IPython, by its name",
    "held_rows.py: _is: sys.modules": "whether a library was imported, by names in the file",
    **dict.fromkeys(
        (
            "postponed.py: <module>: importlib.import_module",
            "postponed.py: <module>: importlib.machinery.PathFinder",
            "postponed.py: _postpone: sys.modules",
            "postponed.py: _postpone_duckdb.core: importlib.import_module",
            "postponed.py: _postpone_duckdb: importlib.machinery.PathFinder",
            "postponed.py: _postpone_duckdb: importlib.machinery.PathFinder.find_spec",
            "postponed.py: _postpone_duckdb: sys.modules",
            "postponed.py: _real: importlib.import_module",
            "postponed.py: _real: sys.modules",
            "postponed.py: postpone_imports: importlib.machinery.PathFinder",
            "postponed.py: postpone_imports: importlib.machinery.PathFinder.find_spec",
        ),
        "modules of installed packages, by names that stand in the file; no statement, table or "
        "file has run yet",
    ),
}
SINKS = {
    "undo.py: undo.run: execute": "a CALL as a value, whose arguments are no text of SQL",
    "dialect.py: IcesqlDialect._execute: execute": "what SQLAlchemy runs for its user",
    "dialect.py: IcesqlDialect.do_executemany: executemany": "the same",
    "reader.py: ReaderFrames.are_plain: execute": "a constant; paths are its parameter",
    "spark_frames.py: _frame: execute": "icesql itself, which reads what the program gives it",
    "doctor.py: _ask.ask: execute": "icesql itself, which reads it as what a person types",
    "maintenance.py: _door.perform: execute": "icesql itself: a call that is a value, and no text",
    "explained.py: definitions_of: sql": "the text of an ALTER TABLE that EXPLAIN shows; it does "
    "not run",
    "adapter.py: IcesqlAdapter._run: execute": "icesql itself, through dbt, whose names are quoted",
    "connections.py: IcesqlConnectionManager.open.connect: execute": "icesql itself, which reads "
    "the branch of the owner's profile as a quoted text",
    "rows.py: engine_batches: sql": "of relations, whose parts are listed below as built",
    "travel.py: travel: execute": "icesql itself, which reads it as what a person types",
    "travel.py: _Search._look: execute": "the same, and names as the catalog's tables spell them",
    "of_table.py: history_lines: execute": "the same",
    "of_table.py: snapshots_of: execute": "the same",
    "pyiceberg.py: _insert: execute": "one of two fixed lists of columns; values bound",
    "pyiceberg.py: _update: execute": "a fixed condition; values bound",
    "demo.py: build.run: execute": "fixed statements",
    "demo.py: _show_undo: execute": "fixed statements, one with the number of a snapshot",
    "sqlite.py: JdbcCatalog._insert: execute": "one of two fixed lists of columns; values bound",
    "sqlite.py: JdbcCatalog._update: execute": "a fixed condition; values bound",
    "sqlite.py: JdbcCatalog.drop: execute": "a fixed condition; values bound",
    "sqlite.py: JdbcCatalog.rename: execute": "a fixed condition; values bound",
    "sqlite.py: SqliteCatalog._catalogs: execute": "put together of two fixed texts",
    "sqlite.py: SqliteCatalog._namespace_texts: execute": "put together of two fixed texts",
    "sqlite.py: SqliteCatalog._tables: execute": "a fixed condition; values bound",
    "sqlite.py: SqliteCatalog._row: execute": "one of two fixed columns; values bound",
    "sqlite.py: _has_table: execute": "a fixed text; values bound",
    "sqlite.py: _columns: execute": "names of the catalog's own tables that stand in the calls",
    "connection.py: Connection.execute: execute": "the user's own statement, to icesql's parser",
    "registered.py: register: execute": "a name in quotes, to icesql's parser",
    "tools.py: Tools._cursor: execute": "an agent's own statement, to icesql's parser, on a "
    "connection that is pinned; names in quotes",
    "server.py: build_server.query: query": "a tool of icesql's, whose argument goes to its parser",
    "dialect.py: IcesqlDialect.do_execute: execute": "SQLAlchemy's statement, and a time as a "
    "literal, to icesql's parser",
    "superset.py: _cancel_when_stopped: query": "Superset's own model, with a number",
    "planned.py: explain_only: execute": "EXPLAIN of a caller's query, to icesql's parser, which "
    "has read the same text before and found no ANALYZE",
    "script.py: Script.run: execute": "a session of icesql, whose argument is a parsed statement",
    "instance.py: Instance.__init__: execute": "folders as literals, constants",
    "engine.py: LocalEngine.ask: execute": "functions that query.pushdown.computed knows "
    "by name, casts and literals of the user's condition; values of files bound",
    "described.py: describe: sql": "bind_sql",
    "described.py: describe: execute": "bind_sql, after EXPLAIN",
    "described.py: _by_statement: execute": "bind_sql, after DESCRIBE",
    "engine.py: LocalResult._fetch_first: execute": "bind_sql, columns cast around it",
    "kept_relations.py: KeptLease._make: execute": "the SQL of a scan, a name of icesql's own",
    "kept_relations.py: _size: execute": "the SQL of a scan, quoted names",
    "engine.py: LocalResult._open_reader: sql": "bind_sql, columns cast around it",
    "engine.py: LocalResult._copy: execute": "bind_sql inside of what copy_statement makes",
    "stream.py: copy_stream.run: execute": "what copy_statement makes around a fixed text",
    "engine.py: LocalResult.engine_plan: execute": "the same, after EXPLAIN",
    "report.py: engine_plan: execute": "an engine of icesql, whose argument is a bound query",
    "job.py: ChangeJob.__call__: execute": "the same, in a worker",
    "size_guards.py: _hide: execute": "names of functions that stand in the file, numbers",
    "bind.py: _types: sql": "spliced_sql",
    "choice.py: FragmentChoice.columns: sql": "spliced_sql",
    "job.py: FragmentJob._run: sql": "a tree's text with subqueries filled in",
    "driver_aggregate.py: Rest.rows: sql": "what rest_of made",
    "driver_aggregate.py: rest_of: sql": "a tree's text",
    "scans.py: Scans.check_grand_totals: sql": "a tree's text in Spark's dialect",
    "scans.py: Scans.prepare: sql": "a tree's text in Spark's dialect",
    "scans.py: Scans.prepare_text: sql": "the text of a user that was found to read its scans alone",
    "session.py: Session._execute: execute": "the pipeline, whose argument is a statement that was read",
    "statements.py: query_rows: execute": "the same",
    "pipeline.py: Pipeline._run: execute": "an engine of icesql, whose argument is a bound query",
    "pipeline.py: Pipeline.with_versions.two_rows: execute": "itself, whose argument it has read",
    "report.py: measure: execute": "an engine of icesql, whose argument is a bound query",
}
PARSERS = {
    "literal_list.py: spread: parse_one": "literals that patterns of the file matched or it wrote",
    "functions.py: function_keys: parse_one": "an example of grammar/functions.txt",
    "kinds.py: spelled: build": "names of types that stand in the calls",
    "operators.py: _read_texts: build": "names of types that stand in the file",
    "nanos.py: _of_text: build": "names of types that stand in the function",
    "types.py: duckdb_type: build": "the name of a type; names of fields in it are quoted",
    "casts.py: _plain: build": "the name of a type, made by types.py",
    "types.py: of_engine: build": "a type as DuckDB itself writes it; the result is looked up, not run",
    "stored.py: StoredViews._item: build": "a type that icesql names itself",
}
_TEMPLATES = "a template of spelled(): its gaps take expressions, the rest are words of the file"
BUILT = {
    "reader.py: <module>": "names of codecs and encodings that stand in the file",
    "constant_rows.py: constant_rows": "SQL that was made here, and powers of two",
    "relation.py: PlainFiles._lineage": "numbers and quoted names",
    "relation.py: PlainFiles.stored": "quoted names, and defaults as literals",
    "sorting.py: sorted_batches.relation": "names that icesql makes, and words of orders",
    "described.py: _by_statement": "what bind_sql checked, after a word",
    "pyiceberg.py: _insert": "one of two fixed lists of columns; values bound",
    "pyiceberg.py: _update": "a fixed condition; values bound",
    "sqlite.py: JdbcCatalog._insert": "one of two fixed lists of columns; values bound",
    "sqlite.py: JdbcCatalog._update": "a fixed condition; values bound",
    "sqlite.py: JdbcCatalog.drop": "a fixed condition; values bound",
    "sqlite.py: JdbcCatalog.rename": "a fixed condition; values bound",
    "sqlite.py: SqliteCatalog._tables": "a fixed condition; values bound",
    "sqlite.py: SqliteCatalog._row": "one of two fixed columns; values bound",
    "sqlite.py: _columns": "names of the catalog's own tables that stand in the calls",
    "bind_sql.py: _about": "SUMMARIZE or DESCRIBE, and text that was checked",
    "deletes.py: live_rows": "names of icesql's own relations",
    "deletes.py: _Keys.anti_join": "quoted names, numbers and icesql's own aliases",
    "deletes.py: _Keys._streamed": "names of icesql's own relations",
    "deletes.py: _Keys._read_by_duckdb": "quoted names, numbers and icesql's own aliases",
    "types.py: duckdb_type": "numbers; names of fields are quoted",
    "file_facts.py: FileFacts.expression": "numbers and icesql's own aliases",
    "file_facts.py: FileFacts.join": "names of icesql's own relations",
    "kept_relations.py: KeptLease.relation": "a name of icesql's own",
    "kept_relations.py: KeptLease._make": "the SQL of a scan, a name of icesql's own",
    "kept_relations.py: _size": "the SQL of a scan, quoted names, numbers",
    "instance.py: Instance.__init__": "folders as literals, constants",
    "messages.py: programming_error": "a message for people",
    "engine.py: _cast": "expressions over columns c0, c1 … and the query itself",
    "statement.py: copy_statement": "columns c0, c1 …, quoted names, checked options as literals",
    "json_text.py: _JsonText._present": "columns c0, c1 …, strftime's format as a literal",
    "json_text.py: _JsonText._nested": "columns c0, c1 …, names of fields and members as literals",
    "read_text.py: _template": "texts of nanosecond_types.py, whose gaps take expressions",
    "read_text.py: TextReading._names": "quoted names",
    "nanosecond_types.py: _instant": "words of the file; its gaps take expressions",
    "nanosecond_types.py: _micros": "words of the file; its gaps take expressions",
    "nanosecond_types.py: _nanos": "words of the file; its gaps take expressions",
    "nanosecond_types.py: _key": "words of the file; its gaps take expressions",
    "nanosecond_types.py: _cast_to": "words of the file; its gaps take expressions",
    "composed.py: filled": "marks; after the check tables' own SQL, quoted names, literals",
    "long_lists.py: _constant": "a constant that is made here",
    "long_lists.py: _typed": "a literal, cast to a type without children or one of two numbers",
    "long_lists.py: _decimal_size": "numbers",
    "changes.py: changes_relation": "quoted names of columns, and c<field id>",
    "changes.py: _Parts.commit": "numbers, constants, and relations that were made here",
    "changes.py: _Parts.nothing": "the same",
    "changes.py: _without_carried": "names c<field id>, and SQL that was made here",
    "changes.py: _net": "the same",
    "changes.py: _updates": "the same",
    "relation.py: parquet_function": "ids as numbers, names, types and defaults as literals",
    "relation.py: empty_relation": "types, and quoted names",
    "relation.py: stream_relation": "quoted names",
    "relation.py: PlainFiles.function": "names of icesql's own parameters",
    "relation.py: PlainFiles.expression": "names of icesql's own parameters, types, quoted names",
    "relation.py: PlainFiles.select": "quoted names",
    "relation.py: file_relation": "functions and options of fixed lists, values of literals alone",
    "relation.py: temporary_sql": "quoted names, and types as DuckDB itself writes them",
    "relation.py: union_all": "subqueries made here",
    "relation_builder.py: RelationBuilder.rows": "numbers of rows",
    "result_schema.py: declared_expression": "columns c0, c1 … and types",
    "result_rows.py: row_expression": "columns c0, c1 … and names of types without children",
    "result_rows.py: no_python_value": "the name of a type without children",
    "long_intervals.py: without_long_intervals": "columns c0, c1 … and names as literals",
    "result_schema.py: engine_sql_type": "numbers; names of fields are quoted",
    "size_guards.py: _macro": "names of functions and expressions that stand in the file, numbers",
    "size_guards.py: _format": "names of functions and expressions that stand in the file, numbers",
    "dialect.py: _refusal_sql": "literals that the dialect's generator wrote",
    "choice.py: _spark_type": "numbers",
    "functions.py: _avg": _TEMPLATES,
    "functions.py: _array_agg": _TEMPLATES,
    "functions.py: _arg_extreme.rewrite": _TEMPLATES,
    "functions.py: _percentile.rewrite": _TEMPLATES,
    "functions.py: _concatenated_lists": _TEMPLATES,
    "functions.py: _list_sum": _TEMPLATES,
    "nanos.py: nanoseconds": _TEMPLATES,
    "numbers.py: remainder": _TEMPLATES,
    "numbers.py: decimal_of_double": _TEMPLATES,
    "numbers.py: float_of_double": _TEMPLATES,
    "numbers.py: _logarithm": _TEMPLATES,
    "numbers.py: _log": _TEMPLATES,
    "numbers.py: _round": _TEMPLATES,
    "numbers.py: _rounded": _TEMPLATES,
    "numbers.py: _whole": _TEMPLATES,
    "operators.py: _add": _TEMPLATES,
    "operators.py: _shift": _TEMPLATES + "; the amount is digits",
    "operators.py: _subscript": _TEMPLATES,
    "operators.py: _cast": _TEMPLATES,
    "operators.py: _type_name": "numbers and names of types",
    "planning.py: <module>": "DELETE is a method of HTTP there, before a path that stands in the file",
    "changes.py: _identity": "names of the form c<field id>, quoted",
    "driver_aggregate.py: _merged_sql": "a tree's text and a type of the file",
    "driver_aggregate.py: rest_of": "columns c0, c1 … and the query itself",
    "texts.py: _substring": _TEMPLATES,
    "texts.py: integer_of_text": _TEMPLATES,
    "texts.py: number_of_text": _TEMPLATES,
    "texts.py: _guarded": _TEMPLATES,
    "texts.py: time_of_text": _TEMPLATES,
    "times.py: truncated": _TEMPLATES,
    "times.py: _diff": _TEMPLATES,
    "times.py: _strftime": _TEMPLATES + "; text of a format is a literal among them",
    "types.py: spark_type": "numbers; names of fields are quoted",
}


@pytest.mark.parametrize(
    ("what", "rooms", "listed"),
    [
        ("code", (), CODE),
        ("sink", (), SINKS),
        ("parser", (), PARSERS),
        # Where SQL for another system is made: DuckDB, Spark, SQLite.
        ("built", ("engine/", "datasource/", "catalog/", "storage/", "read/", "scan/"), BUILT),
    ],
)
def test_what_could_run_data_is_listed_with_a_reason(
    what: str, rooms: tuple[str, ...], listed: dict[str, str]
) -> None:
    found = findings(what, *rooms)
    assert found - set(listed) == set(), "new: make it safe, and say here why it is"
    assert set(listed) - found == set(), "gone: take it out of the list"
    assert all(listed.values())


@pytest.mark.parametrize(
    "source",
    [
        "eval(x)",
        "import builtins\nbuiltins.eval(x)",
        "from builtins import eval as e\ne(x)",
        "import builtins as b\nf = getattr(b, 'ev' + 'al')",
        "getattr(__builtins__, name)(x)",
        "run = exec\nrun(x)",
        "__import__(x)",
        "from pickle import loads as x\nx(data)",
        "import pickle as p\np.loads(data)",
        "import pickle\nfor load in (pickle.load, pickle.Unpickler): load(x)",
        "from pickle import *",
        "import cloudpickle\ncloudpickle.loads(x)",
        "from marshal import loads",
        "import yaml\nyaml.load(x)",
        "from yaml import full_load as f",
        "import importlib as i\ni.import_module(x)",
        "from importlib import import_module",
        "import subprocess",
        "from subprocess import run",
        "import os as o\no.system(x)",
        "from os import popen as p",
        "import sys\nsys.modules[x]",
        "template.format(x)",
        "import ctypes",
        "compile(x, '', 'exec')",
        "import numpy as np\nnp.load(x, allow_pickle=True)",
    ],
)
def test_the_walk_sees_code(source: str) -> None:
    assert Walk(source).found["code"]


@pytest.mark.parametrize(
    "source",
    [
        "con.execute(f'SELECT {x}')",
        "con.sql('SELECT ' + x)",
        "con.sql('SELECT %s' % x)",
        "con.sql('SELECT {}'.format(x))",
        "con.execute(', '.join(x))",
        "q = f'SELECT {x}'\ncon.query(q)",
        "con.executemany(self.q, rows)",
        "def f(q):\n  session.sql(q)",
    ],
)
def test_the_walk_sees_sql(source: str) -> None:
    assert Walk(source).found["sink"]


@pytest.mark.parametrize(
    "source",
    [
        "q = f'SELECT {x}'",
        "q = 'SELECT ' + x",
        "q = 'WHERE %s' % x",
        "q = 'CAST({} AS INT)'.format(x)",
        "q = ' UNION ALL '.join(x)",
        "q = f'read_parquet({x})'",
    ],
)
def test_the_walk_sees_sql_with_gaps(source: str) -> None:
    assert Walk(source).found["built"]


@pytest.mark.parametrize(
    "source",
    [
        "import re\nre.compile(x)",
        "import pickle\npickle.dumps(x)",
        "import json\njson.loads(x)",
        "Q = 'SELECT 1'\ndef f():\n  con.execute(Q, [x])",
        "con.execute('SELECT ?', [x])",
        "import yaml\nyaml.safe_load(x)",
        "raise ValueError(f'SELECT {x}')",
        "getattr(error, 'path', None)",
        "tree.sql(dialect='duckdb')",
        "importlib.metadata.version('icesql')",
    ],
)
def test_the_walk_leaves_the_rest_alone(source: str) -> None:
    assert not any(Walk(source).found.values())
