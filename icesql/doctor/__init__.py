"""Problems of a table, found in its metadata, and the statements that fix them."""
