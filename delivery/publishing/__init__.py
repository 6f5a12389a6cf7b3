"""Storing messages with everything they owe.

Plain posts take a shorter way to the same statement: see `delivery/incoming/short_way/README.md`.
"""
