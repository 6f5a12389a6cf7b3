"""All URLs."""

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path, re_path
from django.views.generic import RedirectView

from config.api_reference import api_reference
from config.api_schema import SchemaView
from config.web import errors, health, metrics
from delivery.api.callbacks import CallbackView
from delivery.api.receive import receive
from delivery.api.replies import ReplyView
from delivery.console.configuration.page import configuration_page
from delivery.console.guide.views import guide_index, guide_page
from delivery.vendors import urls as vendors

urlpatterns: list[URLPattern | URLResolver] = [
    path("", RedirectView.as_view(pattern_name="admin:index")),
    path("admin/configuration/", admin.site.admin_view(configuration_page), name="configuration"),
    path("admin/", admin.site.urls),
    path("guide/", admin.site.admin_view(guide_index), name="guide-index"),
    path("guide/<slug:name>/", admin.site.admin_view(guide_page), name="guide"),
    path("api/v1/", include("delivery.api.urls")),
    path("event/queue/", include(vendors.event_queue)),
    path("attask/", include(vendors.workfront)),
    path("api/v1/", include("delivery.configuration.api")),
    path("api/schema/", SchemaView.as_view(), name="schema"),
    path("api/docs/", api_reference, name="docs"),
    path("", include(vendors.teamforge)),
    re_path("^api/", errors.nothing_here),
    re_path(r"^callbacks/(?P<token>[^/]+)\Z", CallbackView.as_view(), name="callback"),
    re_path(r"^replies/(?P<token>[^/]+)\Z", ReplyView.as_view(), name="reply"),
    re_path(r"^receiver/(?P<token>[^/]+)\Z", receive, name="receiver"),
    path("healthz", health.live),
    path("readyz", health.ready),
    path("metrics", metrics.metrics),
]

handler400 = errors.bad_request
handler403 = errors.permission_denied
handler404 = errors.not_found
handler500 = errors.server_error
