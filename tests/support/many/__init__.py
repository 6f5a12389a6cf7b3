"""A history as large as a busy installation's, written by SQL within minutes."""
