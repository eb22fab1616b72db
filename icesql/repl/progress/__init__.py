"""Messages while a statement runs, and when it was stopped."""
