"""The checks of the whole history: a pure transform per README promise, returning violations."""
