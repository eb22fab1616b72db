"""DELETE and UPDATE as values."""
