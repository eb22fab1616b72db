"""Statements that change tables: read from tokens into frozen values, independent of Iceberg."""
