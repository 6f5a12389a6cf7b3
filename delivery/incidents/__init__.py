"""Incidents: each cause is announced once when it opens one, and once when it is over."""
