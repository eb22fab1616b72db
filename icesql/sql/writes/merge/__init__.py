"""MERGE INTO: its words become a statement, and later the text of the query that finds its rows."""
