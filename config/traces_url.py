"""The setting that turns traces on, and the packages needed for traces."""

import re
from importlib.util import find_spec

from django.core.exceptions import ImproperlyConfigured

from config.env_values import wrong_value

NAME = "OTEL_EXPORTER_OTLP_ENDPOINT"
PACKAGES = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")

_URL = re.compile(r"https?://[^\s/]+\S*")


def traces_url(text: str) -> str:
    """Return the URL of the collector, empty for no traces; raises ImproperlyConfigured."""
    if not text:
        return ""
    if not _URL.fullmatch(text):
        raise wrong_value(NAME, text, allowed="a URL like http://collector.example.com:4318")
    if not _are_installed():
        raise ImproperlyConfigured(
            f"{NAME}: traces need the packages of the extra `otel`: install "
            "opentelemetry-sdk and opentelemetry-exporter-otlp-proto-http, or unset it"
        )
    return text


def _are_installed() -> bool:
    try:
        return all(find_spec(name) is not None for name in PACKAGES)
    except ModuleNotFoundError:  # Of a parent.
        return False
