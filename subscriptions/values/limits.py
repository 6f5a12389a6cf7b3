"""Limits that several parts agree on."""

# The longest time-out a subscription may ask for.
MAX_TIMEOUT_SECONDS = 120
