"""Checks of an installation from outside.

Its proxy, clock and disk, and the endpoints it sends to.
"""
