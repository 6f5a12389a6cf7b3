"""URL patterns of TeamForge's publishers, at the root and below any path that a proxy keeps."""

from django.urls import re_path

from delivery.vendors.teamforge.views import InboxView, LoginView

_PREFIX = r"(?P<prefix>(?:[^/]{1,100}/){0,8})"

urlpatterns = [
    re_path(rf"^{_PREFIX}inbox/(?P<event_type>[^/]+)/(?P<publish_id>[^/]+)/?\Z", InboxView.as_view()),
    re_path(rf"^{_PREFIX}login\Z", LoginView.as_view()),
]
