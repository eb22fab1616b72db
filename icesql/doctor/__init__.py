"""What ails a table, told from its metadata, and the statement that mends it."""
