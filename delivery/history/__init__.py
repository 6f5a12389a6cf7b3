"""The data pipeline over the history, on Spark: archived, measured, verified, replayed. No Django in here.

The archive has four tables of Parquet files (see `schemas`); what PostgreSQL remembers about them, the ledger, says which files
count. Steps read, transform and write; the transforms are pure functions from frames to frames.
"""
