"""Arrow record batches in, data and delete files with their metrics out: the mirror of ``read/``.

``write_task`` runs one picklable WriteTask, on this machine or in a Spark worker, and returns
``DataFile`` values that ``commit/`` puts into a snapshot. Nothing here depends on SQL or a catalog.
May import ``read.columns.arrow_schema``, ``storage`` and ``iceberg``.

The content of a data file, and of one by DuckDB's COPY with FIELD_IDS, where "=" means the same
(``tests/write/test_data_files.py`` checks this table with border values):

    type            physical    logical     bounds         physical, logical and bounds by COPY
    boolean         BOOLEAN     -           values         =           =           =
    int             INT32       -           values         =           Int         =
    long            INT64       -           values         =           Int         =
    float           FLOAT       -           without NaN    =           =           none with NaN
    double          DOUBLE      -           without NaN    =           =           none with NaN
    decimal(9, 2)   INT32       Decimal     values         =           =           =
    decimal(18, 2)  INT64       Decimal     values         =           =           =
    decimal(20, 2)  FIXED[9]    Decimal     values         FIXED[16]   =           =
    decimal(38, 2)  FIXED[16]   Decimal     values         =           =           =
    date            INT32       Date        values         =           =           =
    time            INT64       Time        values         =           =           =
    timestamp       INT64       Timestamp   values         =           =           =
    timestamptz     INT64       Timestamp   values         =           =           =
    timestamp_ns    INT64       Timestamp   values         =           =           =
    timestamptz_ns  INT64       Timestamp   values         =           =           =
    string          BYTE_ARRAY  String      cut            =           =           none if long
    binary          BYTE_ARRAY  -           cut            =           =           =
    fixed[5]        FIXED[5]    -           values         BYTE_ARRAY  =           =
    uuid            FIXED[16]   UUID        values         =           =           =
    geometry        BYTE_ARRAY  Geometry    box            -           -           -
    variant         BYTE_ARRAY  -           none           -           -           -

- A field has its id at every depth and is required if the schema requires it; COPY writes REQUIRED
  only for columns without NULL. Names are Avro's; fields of type unknown are not stored.
- Lists, maps and fields inside have sizes, but no counts or bounds. A struct's fields have all.
- Every column chunk has its NULL count and least and greatest value (a geometry none), a column
  index and an offset index (pages of at most 20,000 rows), and a Bloom filter if a property
  requires one. COPY writes no page indexes, and Bloom filters by its own choice.
- Columns have dictionaries unless their first rows hardly repeat (``parquet_file``).
- Bounds at zero are -0.0 below and 0.0 above; COPY writes whichever occurred. Text is cut
  at 16 code points and binary at 16 bytes, the upper ones increased, or as a property says. NaN is
  counted for floats and doubles, in structs too, and is in no bound.
- ``split_offsets`` are the starts of row groups; ``sort_order_id`` is 0 unless rows were sorted.

One writer writes all types: pyarrow, a thread for each row group (``parquet_footer``). Encoding
TPC-H's lineitem (scale 1) from Arrow tables takes it 2.0 to 2.4 s of CPU time, and the engine 0.9 s
to read the rows into them; COPY, which encodes without indexes, takes 4.2 s for both. COPY for
the types that it writes exactly would mean two writers, files whose point lookups read whole
column chunks, and no savings. With row groups encoded one after the other, without it, an
INSERT of it on two cores takes 2.8 s instead of 2.3.
"""
