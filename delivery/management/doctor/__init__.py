"""Checks of an installation from outside: proxy, clock, disk, stored schemas, endpoints."""
