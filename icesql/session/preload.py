"""Imports that run while the first response about a table is awaited."""

from __future__ import annotations


def load_modules() -> None:
    """Preload modules that most queries of an object store need after the metadata."""
    import icesql.engine.duckdb.relations.read_ahead
    import icesql.engine.duckdb.store_files
    import icesql.query.prepared_query
    import icesql.query.pushdown.predicate
    import icesql.scan.pruning.metrics_evaluator
    import icesql.storage.stores.files
    import icesql.storage.stores.pool

    icesql.engine.duckdb.store_files.load_library()
