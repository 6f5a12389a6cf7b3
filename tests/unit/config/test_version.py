"""One version, the same in every place that shows it."""

import re
import subprocess
import sys
import tomllib

import pytest
from django.conf import settings
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from config.env import CHECKOUT
from config.version import version

pytestmark = pytest.mark.django_db


def test_the_version_is_that_of_the_project() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    assert version() == project["version"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", version())


def test_probes_and_metrics_show_the_version() -> None:
    assert Client().get("/healthz").json() == {"status": "ok", "version": version()}
    text = Client().get("/metrics").text
    (build,) = [
        family
        for family in text_string_to_metric_families(text)
        if family.name == "inturn_build_info"
    ]
    assert [sample.labels["version"] for sample in build.samples] == [version()]


def test_the_console_shows_the_version_to_those_who_signed_in(admin_client: Client) -> None:
    shown = f"Inturn {version()}"
    assert shown in admin_client.get("/admin/").text
    assert shown in admin_client.get("/admin/subscriptions/subscriber/").text
    assert shown not in Client().get("/admin/login/").text


def test_requests_to_endpoints_name_the_version() -> None:
    assert f"Inturn/{version()}" == settings.USER_AGENT


def test_the_command_line_prints_the_version() -> None:
    reported = subprocess.run(
        [sys.executable, str(CHECKOUT / "manage.py"), "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert reported.stdout == f"Inturn {version()}\n"


def test_the_changes_describe_the_version() -> None:
    assert f"## {version()}" in (CHECKOUT / ".project" / "CHANGES.md").read_text()
