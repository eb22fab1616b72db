"""Statistics files of snapshots: of partitions, and how many distinct values columns have."""
