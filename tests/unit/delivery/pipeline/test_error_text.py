"""Error texts of runs, whatever the error is: they can be made, and stored."""

import errno
import os
from pathlib import Path

import pytest
from django.utils import timezone
from py4j.protocol import Py4JError

from delivery.history.job import StepRefusedError
from delivery.history.spark.errors import SparkError
from delivery.history.spark.jvm import JavaError
from delivery.history.spark.reach import ReachError
from delivery.models import RunState
from delivery.pipeline import runs
from delivery.pipeline.error_text import error_in_words, log_of, storable
from delivery.pipeline.runs import Ending
from tests.unit.delivery.pipeline import rows


class _UnreadableError(Py4JError):  # type: ignore[misc]
    def __str__(self) -> str:
        raise ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")


class _EndlessError(ValueError):
    def __str__(self) -> str:
        return str(self)


LARGE = "x" * 10_000_000
ERRORS = [
    _UnreadableError(),
    _EndlessError(),
    ValueError(LARGE),
    SparkError(f"the reason\n{LARGE}"),
    ValueError("a\0b"),
    FileNotFoundError(errno.ENOENT, "No such file", os.fsdecode(b"/archive/\xff")),
    ValueError("\ud83d"),
    ValueError("\n\n"),
]


@pytest.mark.django_db
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_any_error_becomes_a_text_that_its_run_can_store(error: Exception) -> None:
    run = rows.run(state=RunState.RUNNING)
    ending = Ending(state=RunState.FAILED, error=error_in_words(error), log=log_of(error))
    assert 0 < len(ending.error) < 3000
    assert len(ending.log) < 101_000
    assert runs.end_run(run, ending, now=timezone.now())
    run.refresh_from_db()
    assert run.error == ending.error


def test_the_text_of_an_error_without_one_is_its_kind() -> None:
    assert error_in_words(_UnreadableError()) == (
        "_UnreadableError: no details. The log of this run has the full error."
    )


def test_the_first_line_of_sparks_error_is_for_people() -> None:
    assert error_in_words(SparkError(f"the reason\n{LARGE}")) == (
        "the reason The log of this run has the full error."
    )


@pytest.mark.parametrize("kind", [StepRefusedError, ReachError, JavaError])
def test_a_refusal_is_all_that_there_is_to_say(kind: type[Exception]) -> None:
    error = kind("Correct HISTORY_URL,\nand run it again.")
    assert error_in_words(error) == "Correct HISTORY_URL, and run it again."
    assert log_of(error) == ""


def test_a_full_disk_is_named(tmp_path: Path) -> None:
    error = OSError(errno.ENOSPC, "No space left on device", str(tmp_path))
    assert error_in_words(error).startswith("There is no room left ([Errno 28] No space left")


def test_a_usual_text_is_stored_as_it_is() -> None:
    assert storable("ü ☃ 😀\n") == "ü ☃ 😀\n"
