"""URL patterns of the foreign systems whose calls Inturn answers."""

from django.urls import re_path

from delivery.vendors.event_queue.views import QueueViews
from delivery.vendors.teamforge.views import InboxView, LoginView, NoInboxView
from delivery.vendors.workfront.login import WorkfrontLoginView
from delivery.vendors.workfront.views import WorkfrontViews

_QUEUE = r"(?P<queue>[^/]{1,200})"
_ID = r"(?P<id>[^/]{1,100})"
_PREFIX = r"(?P<prefix>(?:[^/]{1,100}/){0,8})"
# First segments of Inturn's own addresses and those of other systems.
_NOT_TEAMFORGE = r"(?!(?:api|event|attask|callbacks|replies|receiver|guide)/)"
_EVENTS = "^eventsubscription/api/v1/subscriptions"

# Below /event/queue/.
event_queue = [
    re_path(rf"^{_QUEUE}/next/?\Z", QueueViews.as_view({"post": "next", "get": "next"})),
    re_path(rf"^{_QUEUE}/ack/?\Z", QueueViews.as_view({"post": "ack"})),
    re_path(rf"^{_QUEUE}/status/?\Z", QueueViews.as_view({"get": "status"})),
]
# Below /attask/.
workfront = [
    re_path(r"^api/(?:v[0-9.]{1,10}/)?login/?\Z", WorkfrontLoginView.as_view()),
    re_path(rf"{_EVENTS}/?\Z", WorkfrontViews.as_view({"get": "list", "post": "create"})),
    re_path(rf"{_EVENTS}/list/?\Z", WorkfrontViews.as_view({"get": "all"})),
    re_path(rf"{_EVENTS}/version/?\Z", WorkfrontViews.as_view({"put": "put_versions"})),
    re_path(rf"{_EVENTS}/{_ID}/version/?\Z", WorkfrontViews.as_view({"put": "put_version"})),
    re_path(
        rf"{_EVENTS}/{_ID}/?\Z", WorkfrontViews.as_view({"get": "retrieve", "delete": "destroy"})
    ),
]
# Of TeamForge's publishers: at the root, and below any path kept by a proxy.
teamforge = [
    re_path(
        rf"^{_PREFIX}inbox/(?P<event_type>[^/]+)/(?P<publish_id>[^/]+)/?\Z", InboxView.as_view()
    ),
    re_path(rf"^{_NOT_TEAMFORGE}{_PREFIX}login/?\Z", LoginView.as_view()),
    re_path(rf"^{_NOT_TEAMFORGE}{_PREFIX}inbox(?P<rest>(?:/.*)?)\Z", NoInboxView.as_view()),
]
