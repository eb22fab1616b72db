"""Two writers of one table: its catalogs, what they do to each other, and what is left."""
