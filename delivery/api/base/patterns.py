"""The common parts of the API's URL patterns."""

from django.urls import URLPattern, re_path

from delivery.api.base.resource import Resource

NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}"
ID = r"[0-9]{1,18}"


def resource_urls(prefix: str, views: type[Resource]) -> list[URLPattern]:
    """Return the URLs of a resource and of each row."""
    place = rf"(?P<name>{NAME})" if views.lookup_field == "name" else rf"(?P<pk>{ID})"
    return [
        re_path(rf"^{prefix}\Z", views.as_view({"get": "list", "post": "create"})),
        re_path(
            rf"^{prefix}/{place}\Z",
            views.as_view({"get": "retrieve", "patch": "partial_update", "delete": "destroy"}),
        ),
    ]
