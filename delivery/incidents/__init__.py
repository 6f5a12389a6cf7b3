"""Incidents: each cause is announced once when it opens an incident, and once when it is over."""
