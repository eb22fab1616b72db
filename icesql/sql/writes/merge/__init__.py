"""MERGE INTO: its tokens become a statement, later the text of the query that finds its rows."""
