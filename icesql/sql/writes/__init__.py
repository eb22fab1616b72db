"""Statements that change tables: read from tokens into frozen values, which know no Iceberg."""
