"""Read combined scan tasks: tasks in, Arrow record batches of live rows out.

The reference reader for every file format, delete kind and schema evolution. May import: scan,
storage, iceberg, context, config, errors.
"""
