"""Checks of an installation from outside: its proxy, its clock and disk, and the endpoints that it sends to."""
