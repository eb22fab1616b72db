"""Statistics files of snapshots: of partitions, and of the distinct values of columns."""
