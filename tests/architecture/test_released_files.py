"""Files for other programs, read by these or by their grammars: see `.ci/tools`."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from config.env import CHECKOUT
from config.up.clusters import NAMES
from config.version import version
from tests.architecture.test_containers import expressions
from tests.support import ci_tools

pytestmark = [
    pytest.mark.skipif(bool(ci_tools.MISSING), reason=ci_tools.MISSING),
    pytest.mark.slow,
]

RENDERER = CHECKOUT / "tests" / "support" / "rendered_chart.py"
CHART = CHECKOUT / ".container" / "chart"
Resource = dict[str, Any]

URL = {"INTURN_BASE_URL": "https://hooks.example.com"}
VALUES: dict[str, dict[str, Any]] = {
    "default": {},
    "archive elsewhere": {"settings": URL | {"HISTORY_URL": "s3a://bucket/inturn"}},
    "first start": {
        "firstStartSecretName": "first",
        "ingress": {"enabled": True, "host": "hooks.example.com", "tlsSecretName": "certificate"},
    },
    "secret in clear text": {"settings": URL | {"INTURN_SECRET_KEY": "in clear text"}},
    "no secret": {"secretName": ""},
    "no command": {"parts": {"web": {"command": [], "replicas": 1}}},
}


@pytest.fixture(scope="module")
def charts() -> dict[str, Any]:
    """Helm's result for each of VALUES: resources, or an objection."""
    command = [ci_tools.PYTHON, str(RENDERER), str(CHART), json.dumps(list(VALUES.values()))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return dict(zip(VALUES, json.loads(done.stdout), strict=True))


def of_kind(found: list[Resource], kind: str) -> dict[str, Resource]:
    return {item["metadata"]["name"]: item for item in found if item["kind"] == kind}


def test_the_chart_has_a_deployment_for_each_part(charts: dict[str, Any]) -> None:
    found = charts["default"]
    deployments = of_kind(found, "Deployment")
    assert set(deployments) == {f"hooks-{part}" for part in ("web", *NAMES)}
    for deployment in deployments.values():
        pod = deployment["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"]
        (prepare,), (part,) = pod["initContainers"], pod["containers"]
        assert prepare["args"] == ["prepare"]
        assert part["readinessProbe"]
        for container in (prepare, part):
            assert container["securityContext"]["readOnlyRootFilesystem"]
            assert container["image"] == f"inturn:{version()}"
    assert set(of_kind(found, "PodDisruptionBudget")) == {"hooks-web", "hooks-senders"}
    (service,) = of_kind(found, "Service").values()
    web = deployments["hooks-web"]["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= web.items()


def test_the_archive_is_a_volume_or_elsewhere(charts: dict[str, Any]) -> None:
    assert set(of_kind(charts["default"], "PersistentVolumeClaim")) == {"hooks-archive"}
    elsewhere = charts["archive elsewhere"]
    assert of_kind(elsewhere, "PersistentVolumeClaim") == {}
    pod = of_kind(elsewhere, "Deployment")["hooks-web"]["spec"]["template"]["spec"]
    assert [volume["name"] for volume in pod["volumes"]] == ["home", "tmp"]


def test_secrets_of_the_first_start_reach_prepare_alone(charts: dict[str, Any]) -> None:
    found = charts["first start"]
    pod = of_kind(found, "Deployment")["hooks-senders"]["spec"]["template"]["spec"]
    given = [
        [source["secretRef"]["name"] for source in container["envFrom"]]
        for container in (*pod["initContainers"], *pod["containers"])
    ]
    assert given == [["inturn", "first"], ["inturn"]]
    assert of_kind(found, "Ingress")


@pytest.mark.parametrize("name", ["secret in clear text", "no secret", "no command"])
def test_wrong_values_are_refused(charts: dict[str, Any], name: str) -> None:
    assert "values don't meet the specifications" in charts[name]


def test_the_compose_file_is_one() -> None:
    file = CHECKOUT / ".container" / "compose.yaml"
    schema = ("--builtin-schema", "vendor.compose-spec")
    command = [ci_tools.PYTHON, "-m", "check_jsonschema", *schema, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_prometheus_understands_all_expressions() -> None:
    program = "import json, sys, promql_parser as p; list(map(p.parse, json.load(sys.stdin)))"
    done = subprocess.run(
        [ci_tools.PYTHON, "-c", program],
        input=json.dumps(list(expressions().values())),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_bill_of_materials_lists_each_package_of_the_runtime(tmp_path: Path) -> None:
    file = tmp_path / "inturn.cdx.json"
    subprocess.run([CHECKOUT / ".ci" / "sbom", file], check=True, capture_output=True, cwd=CHECKOUT)
    bill = json.loads(file.read_text())
    assert bill["metadata"]["component"]["name"] == "inturn"
    listed = {f"{package['name']}=={package['version']}" for package in bill["components"]}
    lock = (CHECKOUT / "config" / "requirements.lock").read_text()
    assert listed == set(re.findall(r"^[a-z0-9._-]+==[^ ;]+", lock, re.MULTILINE))
    assert all(package["purl"].startswith("pkg:pypi/") for package in bill["components"])
