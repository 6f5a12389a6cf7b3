"""A history as large as that of a busy installation, written by SQL within minutes."""
