"""Whose addresses are TeamForge's: errors outside the views have the envelope there as well."""

from django.urls import Resolver404, resolve

from delivery.vendors.teamforge.views import TeamForgeView


def is_teamforge_address(path: str) -> bool:
    try:
        view = resolve(path).func
    except Resolver404:
        return False
    return issubclass(getattr(view, "cls", object), TeamForgeView)
