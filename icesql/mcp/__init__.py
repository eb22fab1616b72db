"""``icesql mcp``: Iceberg tables for agents, over the Model Context Protocol.

In: calls of tools; out: text tables and JSON. Reads only, on a connection that is pinned as for
untrusted SQL. May import repl (to lay out tables), dbapi and what those import.
"""
