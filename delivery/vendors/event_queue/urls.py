"""URL patterns of the Event Queue, below /event/queue/."""

from django.urls import re_path

from delivery.vendors.event_queue.views import QueueViews

QUEUE = r"(?P<queue>[^/]{1,200})"

urlpatterns = [
    re_path(rf"^{QUEUE}/next\Z", QueueViews.as_view({"post": "next", "get": "next"})),
    re_path(rf"^{QUEUE}/ack\Z", QueueViews.as_view({"post": "ack"})),
    re_path(rf"^{QUEUE}/status\Z", QueueViews.as_view({"get": "status"})),
]
