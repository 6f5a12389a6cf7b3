"""Limits that several modules share."""

# The longest time-out that a subscription may have.
MAX_TIMEOUT_SECONDS = 120
