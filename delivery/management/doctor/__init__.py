"""Checks of an installation from outside: proxy, clock, disk, and the endpoints it sends to."""
