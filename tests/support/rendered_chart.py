"""Renders the Helm chart with Helm's own library, and checks the resources for Kubernetes.

It runs in the environment of `.ci/tools`, which has nothing of Inturn: `python rendered_chart.py
CHART VALUES`, with a list of values as JSON. Prints for each the list of resources, or Helm's
objection. A resource refused by Kubernetes is an error.
"""

import json
import sys
from typing import Any

import kubernetes_validate
import yaml
from helm_python import chart

KUBERNETES = "1.31"
WARNING = 2


def rendered(loaded: chart.Chart, folder: str, values: dict[str, Any]) -> list[Any] | str:
    """Return the resources, or Helm's objection to the values."""
    report = chart.lint(folder, values, strict=True, kube_version=f"v{KUBERNETES}.0")
    reported = [found["error"] for found in report["messages"] if found["severity"] >= WARNING]
    if reported or report["errors"]:
        return "\n".join([*reported, *report["errors"]])
    files = loaded.render(values, name="hooks", namespace="inturn")
    resources = [
        resource
        for name, text in files.items()
        if name.endswith(".yaml")
        for resource in yaml.safe_load_all(text)
        if resource
    ]
    for resource in resources:
        kubernetes_validate.validate(resource, KUBERNETES, strict=True)
    return resources


if __name__ == "__main__":
    folder, wanted = sys.argv[1], json.loads(sys.argv[2])
    loaded = chart.Chart.load(folder)
    print(json.dumps([rendered(loaded, folder, values) for values in wanted]))
