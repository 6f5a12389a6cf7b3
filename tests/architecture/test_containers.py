"""The files for containers name settings, commands, parts and metrics that exist."""

import importlib
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from django.test import Client
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from config.env import CHECKOUT
from config.up.clusters import NAMES
from config.version import version
from delivery.database.parts import PARTS
from delivery.models import TrafficMark
from tests.architecture.test_settings import settings
from tests.support.containerfile import instructions

FOLDER = CHECKOUT / ".container"
CHART = FOLDER / "chart"
MONITORING = FOLDER / "monitoring"
OWN_SETTING = re.compile(r"\b(?:INTURN_[A-Z_]+|DATABASE_URL|HISTORY_URL)\b")
# Of compose.yaml itself.
NO_SETTINGS = {"INTURN_IMAGE"}
METRIC = re.compile(r"\binturn_[a-z_]+\b")


def texts() -> dict[str, str]:
    files = [path for path in FOLDER.rglob("*") if path.is_file()]
    return {str(path.relative_to(FOLDER)): path.read_text() for path in files}


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text())
    return found


def commands() -> Iterator[list[str]]:
    """Yield each command of `inturn` in the files."""
    parts = yaml.safe_load((CHART / "values.yaml").read_text())["parts"]
    yield from (part["command"] for part in parts.values())
    for service in compose()["services"].values():
        is_ours = "inturn" in service["image"]
        if is_ours:
            yield service["command"]
        test = service.get("healthcheck", {}).get("test")
        if is_ours and test:
            assert test[:2] == ["CMD", "inturn"]
            yield test[2:]
    for name, rest in instructions():
        if name == "CMD":
            yield json.loads(rest)
        if name == "HEALTHCHECK":
            yield json.loads(rest.partition(" CMD ")[2])[1:]


def test_all_files_name_only_settings_that_exist() -> None:
    named = {
        (file, name)
        for file, text in texts().items()
        for name in OWN_SETTING.findall(text)
        if name not in NO_SETTINGS
    }
    assert named
    assert {(file, name) for file, name in named if name not in settings()} == set()


def test_all_commands_exist_and_name_parts_that_exist() -> None:
    found = list(commands())
    assert ["up"] in found
    for command, *options in found:
        assert (CHECKOUT / "config" / "management" / "commands" / f"{command}.py").exists()
        allowed = {"qcluster": ("--name", NAMES), "ready": ("--part", PARTS)}.get(command)
        if options:
            assert allowed is not None, command
            assert options[0] == allowed[0]
            assert options[1] in allowed[1]


def test_every_part_has_a_container_that_is_checked() -> None:
    assert set(PARTS) == set(NAMES)
    services = compose()["services"]
    values = yaml.safe_load((CHART / "values.yaml").read_text())["parts"]
    assert set(values) == {"web", *NAMES}
    for name in NAMES:
        assert services[name]["command"] == values[name]["command"] == ["qcluster", "--name", name]
        assert services[name]["healthcheck"]["test"][-2:] == ["--part", name]
    assert services["web"]["command"] == ["web"]
    assert services["web"]["healthcheck"]["test"] == ["CMD", "inturn", "ready"]


def test_the_parts_of_compose_wait_for_a_prepared_database_and_may_do_little() -> None:
    services = compose()["services"]
    assert services["prepare"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    for name in ("web", *NAMES):
        service = services[name]
        assert service["depends_on"]["prepare"]["condition"] == "service_completed_successfully"
        assert service["read_only"]
        assert service["cap_drop"] == ["ALL"]
        assert service["volumes"] == ["home:/var/lib/inturn"]
    published = [port for service in services.values() for port in service.get("ports", ())]
    assert published == ["127.0.0.1:8000:8000"]
    used = {
        volume.partition(":")[0]
        for service in services.values()
        for volume in service.get("volumes", ())
    }
    assert used == set(compose()["volumes"])


def test_the_image_runs_as_nobody_special_and_is_checked() -> None:
    last_stage = instructions()[[name for name, _ in instructions()].index("FROM", 1) :]
    named = dict(last_stage)
    assert int(named["USER"].partition(":")[0]) > 0
    assert "HEALTHCHECK" in named
    assert json.loads(named["ENTRYPOINT"]) == ["inturn"]


def test_the_image_is_made_of_files_that_exist() -> None:
    copied = [rest.split()[:-1] for name, rest in instructions() if name == "COPY"]
    sources = [name for names in copied for name in names if not names[0].startswith("--from")]
    assert "config" in sources
    assert [name for name in sources if not (CHECKOUT / name).exists()] == []
    ignored = (CHECKOUT / ".dockerignore").read_text().splitlines()
    kept = {line.removeprefix("!") for line in ignored if line.startswith("!")}
    assert [name for name in sources if kept.isdisjoint({name, name.split("/")[0]})] == []


def test_the_chart_has_the_version_of_the_project() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (version(), version())


def expressions() -> dict[str, str]:
    """Return all expressions for Prometheus, by the names of alerts and panels."""
    rules = yaml.safe_load((MONITORING / "rules.yaml").read_text())
    alerts = {rule["alert"]: rule["expr"] for group in rules["groups"] for rule in group["rules"]}
    dashboard = json.loads((MONITORING / "dashboard.json").read_text())
    panels = {
        f"{panel['title']} {target['refId']}": target["expr"]
        for panel in dashboard["panels"]
        for target in panel["targets"]
    }
    assert alerts
    assert panels
    return alerts | panels


@pytest.mark.django_db
def test_alerts_and_dashboard_use_metrics_that_exist() -> None:
    importlib.import_module("config.web.rsgi")  # It registers the metrics of a web process.
    TrafficMark.objects.create(pk=1, until=timezone.now(), accepted=1, delivered=1, failed=1)
    Client().get("/healthz")
    families = text_string_to_metric_families(Client().get("/metrics").text)
    known = {sample.name for family in families for sample in family.samples}
    used = {name for text in expressions().values() for name in METRIC.findall(text)}
    assert "inturn_part_sessions" in used
    assert used - known == set()


def test_each_alert_says_what_to_do() -> None:
    rules = yaml.safe_load((MONITORING / "rules.yaml").read_text())
    for rule in rules["groups"][0]["rules"]:
        assert rule["labels"]["severity"] in {"critical", "warning"}
        assert set(rule["annotations"]) == {"summary", "action"}
        assert rule["for"]
