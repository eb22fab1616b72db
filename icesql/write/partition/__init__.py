"""Which partition a row belongs to, and in which order rows are written."""
