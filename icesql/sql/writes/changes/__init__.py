"""DELETE and UPDATE as statement values."""
