"""Servers installed as wheels, so that one command runs everything on a bare machine."""
