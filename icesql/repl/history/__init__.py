"""The history of a table, drawn."""
