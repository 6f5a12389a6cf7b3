"""`configuration`: its output and its exit codes."""

import io
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from pytest_django.fixtures import Settings

from config.env import CHECKOUT
from delivery.configuration.document.document_json import document_text
from delivery.configuration.document.export import export_configuration
from delivery.models import PipelineRun
from subscriptions.models import Publisher, Subscription
from tests.support import factories
from tests.unit.delivery.configuration.document.documents import (
    SECRET_VALUES,
    document,
    some_of_everything,
)

pytestmark = pytest.mark.django_db

DELIVERED_KEY = "ABC_PROJECT_1008_HEADER_X_KEY"


def configuration(*arguments: str) -> tuple[int, str]:
    """Return the exit code and the output."""
    out = io.StringIO()
    try:
        call_command("configuration", *arguments, stdout=out)
    except SystemExit as end:
        return int(end.code or 0), out.getvalue()
    return 0, out.getvalue()


def saved(folder: Path, content: Any) -> str:
    path = folder / "inturn.json"
    path.write_text(content if isinstance(content, str) else document_text(content))
    return str(path)


def digest_of(said: str) -> str:
    found = re.search(r"^digest (\w{64})$", said, re.MULTILINE)
    assert found
    return found[1]


def test_export_writes_the_document() -> None:
    some_of_everything()
    assert configuration("export") == (0, document_text(export_configuration()))
    assert configuration("export", "--only", "publishers")[1] == document_text(
        export_configuration(only=["publishers"])
    )


def test_plan_exits_with_2_when_there_are_changes_and_0_when_there_are_none(tmp_path: Path) -> None:
    file = saved(tmp_path, document(publishers=[{"name": "github", "description": "Äpfel"}]))
    code, said = configuration("plan", file)
    assert code == 2
    assert said.splitlines()[:3] == [
        "create publisher github",
        "    description: Äpfel",
        "1 to create, 0 to change, 0 to delete, 0 unchanged",
    ]
    assert configuration("apply", file, "--plan", digest_of(said))[0] == 0
    code, said = configuration("plan", file)
    assert (code, said.splitlines()[0]) == (0, "0 to create, 0 to change, 0 to delete, 1 unchanged")


def test_a_plan_warns_of_event_types_that_differ_in_case(tmp_path: Path) -> None:
    factories.event_type("jenkins.build")
    names = ["Jenkins.Build", "Other", "Made.Here", "made.here"]
    file = saved(tmp_path, document(event_types=[{"name": name} for name in names]))
    code, said = configuration("plan", file)
    assert code == 2
    warned = [
        line.split(" differ ")[0] for line in said.splitlines() if line.startswith("warning: ")
    ]
    assert warned == [
        "warning: the event types Jenkins.Build, jenkins.build",
        "warning: the event types Made.Here, made.here",
    ]
    assert configuration("apply", file, "--plan", digest_of(said))[0] == 0
    assert "warning" not in configuration("plan", file)[1]


def test_a_plan_does_not_warn_of_an_event_type_that_it_deletes(tmp_path: Path) -> None:
    factories.event_type("jenkins.build")
    file = saved(tmp_path, document(event_types=[{"name": "Jenkins.Build"}]))
    assert "warning" not in configuration("plan", file, "--prune")[1]


def test_a_change_is_shown_with_before_and_after(tmp_path: Path) -> None:
    some_of_everything()
    content = export_configuration()
    content["subscriptions"][2]["timeout_seconds"] = 7
    _, said = configuration("plan", saved(tmp_path, content))
    assert "change subscription abc/project-1008\n    timeout_seconds: 30 → 7\n" in said


@pytest.mark.parametrize("days", ["0", "3661", "-1"])
def test_a_plan_tries_no_impossible_number_of_days(tmp_path: Path, days: str) -> None:
    file = saved(tmp_path, document(publishers=[{"name": "github"}]))
    with pytest.raises(CommandError, match="from 1 to 3,660"):
        configuration("plan", file, f"--days={days}")


def test_a_plan_that_concerns_no_message_starts_no_run(tmp_path: Path) -> None:
    file = saved(tmp_path, document(publishers=[{"name": "github"}]))
    code, said = configuration("plan", file, "--days=30")
    assert (code, "effect" in said) == (2, False)
    assert not PipelineRun.objects.exists()


def test_a_refusal_reports_all_faults_and_changes_nothing(tmp_path: Path) -> None:
    file = saved(
        tmp_path,
        document(publishers=[{"name": "good"}, {"name": "b d"}], subscribers=[{"name": ""}]),
    )
    with pytest.raises(CommandError) as caught:
        configuration("plan", file)
    assert caught.value.returncode == 1
    assert "subscribers[0]" in str(caught.value)
    file = saved(tmp_path, document(publishers=[{"name": "good"}, {"name": "b d"}]))
    with pytest.raises(CommandError, match="publisher b d, name: Use letters"):
        configuration("apply", file, "--plan", "0" * 64)
    assert not Publisher.objects.exists()


def test_apply_refuses_another_plan(tmp_path: Path) -> None:
    file = saved(tmp_path, document(publishers=[{"name": "github"}]))
    with pytest.raises(CommandError, match="Plan again"):
        configuration("apply", file, "--plan", "0" * 64)
    assert not Publisher.objects.exists()


def test_secrets_come_from_the_environment_and_from_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    settings.ENVIRONMENT = replace(
        settings.ENVIRONMENT, references=replace(settings.ENVIRONMENT.references, folder=tmp_path)
    )
    some_of_everything()
    content = export_configuration(only=["subscriptions"])
    content["subscriptions"][0]["auth"]["token"] = {"from": "file:token"}
    (tmp_path / "token").write_text("from-a-file\n")
    monkeypatch.setenv(f"CONFIGURATION_SECRET_{DELIVERED_KEY}", "from the environment")
    file = saved(tmp_path, content)
    code, said = configuration("plan", file)
    assert code == 2
    assert "(set anew)" in said
    assert not any(
        value in said for value in (*SECRET_VALUES, "from-a-file", "from the environment")
    )
    configuration("apply", file, "--plan", digest_of(said))
    assert Subscription.objects.get(name="all").auth["token"] == "from-a-file"
    assert Subscription.objects.get(name="project-1008").headers["X-Key"] == "from the environment"


def test_drift_says_how_the_installation_differs(tmp_path: Path) -> None:
    some_of_everything()
    file = saved(tmp_path, export_configuration())
    assert configuration("drift", file)[0] == 0
    Publisher.objects.filter(name="anybody").update(description="changed by hand")
    Publisher.objects.create(name="by-hand")
    code, said = configuration("drift", file)
    assert code == 2
    assert 'change publisher anybody\n    description: changed by hand → ""\n' in said
    assert "delete publisher by-hand\n" in said


def test_drift_shows_objects_that_cannot_be_deleted_too(tmp_path: Path) -> None:
    some_of_everything()
    code, said = configuration("drift", saved(tmp_path, document(subscribers=[])))
    assert code == 2
    assert "delete subscriber abc\n" in said


def test_a_file_that_cannot_be_read_is_reported() -> None:
    with pytest.raises(CommandError, match="/nowhere cannot be read: No such file"):
        configuration("plan", "/nowhere")


@pytest.mark.slow
def test_a_wrong_call_does_not_exit_as_if_there_were_changes() -> None:
    ended = subprocess.run(
        [sys.executable, str(CHECKOUT / "manage.py"), "configuration", "plan"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1
    assert "usage" in ended.stderr
