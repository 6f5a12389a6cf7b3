"""URL patterns of Workfront's event subscriptions, below /attask/eventsubscription/api/v1/."""

from django.urls import re_path

from delivery.vendors.workfront.views import WorkfrontViews

ID = r"(?P<id>[0-9A-Fa-f-]{32,36})"

urlpatterns = [
    re_path(r"^subscriptions/?\Z", WorkfrontViews.as_view({"get": "list", "post": "create"})),
    re_path(r"^subscriptions/list/?\Z", WorkfrontViews.as_view({"get": "all"})),
    re_path(r"^subscriptions/version/?\Z", WorkfrontViews.as_view({"put": "put_versions"})),
    re_path(rf"^subscriptions/{ID}/version/?\Z", WorkfrontViews.as_view({"put": "put_version"})),
    re_path(rf"^subscriptions/{ID}/?\Z", WorkfrontViews.as_view({"get": "retrieve", "delete": "destroy"})),
]
