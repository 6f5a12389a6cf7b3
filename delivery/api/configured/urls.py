"""URLs of the configuration API."""

from django.urls import URLPattern, re_path

from delivery.api.base.resource import Resource
from delivery.api.configured.common_scripts import CommonScriptViews
from delivery.api.configured.event_types import EventTypeViews
from delivery.api.configured.keys import (
    AccessKeyViews,
    KeyViews,
    PublisherKeyViews,
    SubscriberKeyViews,
)
from delivery.api.configured.policies import PolicyViews
from delivery.api.configured.publish_ids import PublishIdViews
from delivery.api.configured.publishers import PublisherViews
from delivery.api.subscribing.filters import FilterCheckView
from delivery.api.subscribing.secrets import SecretViews

NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}"
ID = r"[0-9]{1,18}"


def resource_urls(prefix: str, views: type[Resource]) -> list[URLPattern]:
    """Return the URLs of a resource and of each of its rows."""
    place = rf"(?P<name>{NAME})" if views.lookup_field == "name" else rf"(?P<pk>{ID})"
    return [
        re_path(rf"^{prefix}\Z", views.as_view({"get": "list", "post": "create"})),
        re_path(
            rf"^{prefix}/{place}\Z",
            views.as_view({"get": "retrieve", "patch": "partial_update", "delete": "destroy"}),
        ),
    ]


def key_urls(prefix: str, views: type[KeyViews | PublishIdViews]) -> list[URLPattern]:
    return [
        re_path(rf"^{prefix}\Z", views.as_view({"get": "list", "post": "create"})),
        re_path(
            rf"^{prefix}/(?P<pk>{ID})\Z", views.as_view({"get": "retrieve", "delete": "destroy"})
        ),
    ]


urlpatterns = [
    *resource_urls("event-types", EventTypeViews),
    *resource_urls("publishers", PublisherViews),
    *key_urls(rf"publishers/(?P<owner>{NAME})/keys", PublisherKeyViews),
    *key_urls(rf"publishers/(?P<owner>{NAME})/publish-ids", PublishIdViews),
    *key_urls(rf"subscribers/(?P<owner>{NAME})/keys", SubscriberKeyViews),
    *resource_urls("policies", PolicyViews),
    *resource_urls("common-scripts", CommonScriptViews),
    *key_urls("keys", AccessKeyViews),
    re_path(rf"^subscriptions/(?P<pk>{ID})/secrets\Z", SecretViews.as_view()),
    re_path(r"^filters/check\Z", FilterCheckView.as_view()),
]
