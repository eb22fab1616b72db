"""Determine the partition of each row, and the order in which rows are written."""
