"""What is said while a statement runs, and when it was stopped."""
