"""The checks of the whole history: one pure transform per README promise, returning violations."""
