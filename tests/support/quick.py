"""Long lists of similar cases, of which the quick run takes every third."""

from hypothesis import settings

# 1 with `--full`, and for a test run by name: see tests/conftest.py.
STRIDE = 60 // settings().max_examples
