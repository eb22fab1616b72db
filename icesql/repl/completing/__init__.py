"""What may come next at the cursor."""
