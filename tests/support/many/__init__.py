"""A history as large as that of a busy installation, written by SQL in minutes instead of being lived through."""
