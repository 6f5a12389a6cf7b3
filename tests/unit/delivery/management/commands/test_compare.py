"""`manage.py compare`: options that cannot be compared, and exit codes by the result."""

from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from delivery.models import PipelineRun, Step
from tests.support import factories

pytestmark = pytest.mark.django_db(transaction=True)
ID = "$$->'Body'->>'id'"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    file = tmp_path / "log.csv"
    file.write_text("key,status,time\na,200,2026-11-22T10:00:00Z\n")
    return file


def ended(*arguments: Any) -> CommandError:
    with pytest.raises(CommandError) as raised:
        call_command("compare", *map(str, arguments))
    return raised.value


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--key", "id"], "id is unknown; put strings and names in single quotes"),
        (["--key", ID, "--status", "done"], "write WORD=STATUS, such as done=DELIVERED"),
        (
            ["--key", ID, "--status", "done=SENT"],
            "done=SENT: the status is one of PENDING, DELIVERED",
        ),
        (
            ["--key", ID, "--since", "2026-11-22", "--until", "2026-11-21"],
            "since has to be before until",
        ),
    ],
)
def test_a_wrong_option_is_refused_before_a_run(log: Path, arguments: list[str], said: str) -> None:
    error = ended("--theirs", log, *arguments)
    assert (error.returncode, PipelineRun.objects.count()) == (2, 0)
    assert said in str(error)


def test_a_missing_file_is_refused_before_a_run(tmp_path: Path) -> None:
    error = ended("--theirs", tmp_path / "none.csv", "--key", ID)
    assert (str(error), error.returncode) == (f"There is no file {tmp_path}/none.csv.", 2)


def test_an_unknown_subscription_is_refused(log: Path) -> None:
    error = ended("--theirs", log, "--key", ID, "--subscription", "crm/none")
    assert "There is no subscription crm/none" in str(error)


def test_without_an_archive_nothing_is_compared(log: Path) -> None:
    subscription = factories.subscription()
    error = ended("--theirs", log, "--key", ID, "--subscription", subscription.pk)
    assert error.returncode == 2
    assert "run `history export` first" in str(error)
    run = PipelineRun.objects.get()
    assert (run.step, run.options["subscription_id"]) == (Step.COMPARE, subscription.pk)
    assert run.options["subscription"] == str(subscription)
