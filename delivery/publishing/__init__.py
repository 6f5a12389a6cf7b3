"""Storing messages with everything they owe.

Most posts take a shorter way to the same statement: see `delivery/ingest/README.md`.
"""
