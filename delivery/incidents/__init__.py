"""Incidents: what is wrong is told to people once for each cause, and once when it is over."""
