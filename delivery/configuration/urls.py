"""URLs of the configuration document."""

from django.urls import re_path

from delivery.configuration.api import ApplyView, DocumentView, PlanView

urlpatterns = [
    re_path(r"^configuration\Z", DocumentView.as_view()),
    re_path(r"^configuration/plan\Z", PlanView.as_view()),
    re_path(r"^configuration/apply\Z", ApplyView.as_view()),
]
