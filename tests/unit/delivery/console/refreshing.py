"""Requests of the script that refreshes parts of pages."""

from typing import Any

from django.test import Client


def refresh(client: Client, address: str, part: str = "", **headers: str) -> Any:
    """Return the answer for the element `part` of the page at the address."""
    return client.get(address, headers={"HX-Request": "true", "HX-Target": part, **headers})
