"""The data pipeline over the history, on Spark: archives, measures, verifies, replays.

No Django here.

The archive has four tables of Parquet files (see `schemas`). The ledger in PostgreSQL determines
which files count. Steps read, transform and write; the transforms are pure functions from frames to
frames.
"""
