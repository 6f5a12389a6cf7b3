"""Servers that come as wheels, so that one command on a bare machine runs everything."""
