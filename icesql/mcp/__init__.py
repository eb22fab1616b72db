"""``icesql mcp``: Iceberg tables for agents, over the Model Context Protocol.

In: calls of tools; out: text tables and JSON. Read-only, on a connection with the limits for
untrusted SQL. May import repl (to lay out tables), dbapi and what those import.
"""
