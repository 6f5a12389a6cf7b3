"""INTURN_RETENTION_DAYS: its values replace defaults, and wrong values are reported."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from config import env
from config.retention_days import DEFAULT_DAYS, retention_days

SETTING = "INTURN_RETENTION_DAYS"


def test_unset_periods_keep_their_default() -> None:
    assert retention_days([]) == DEFAULT_DAYS
    assert retention_days(["DELIVERED=7", " failed = Never ", "3xxnotsupported=1"]) == {
        **DEFAULT_DAYS,
        "DELIVERED": 7,
        "FAILED": None,
        "3xxNOTSUPPORTED": 1,
    }


def test_never_alone_keeps_everything() -> None:
    assert set(retention_days(["never"]).values()) == {None}


@pytest.mark.parametrize(
    "text",
    [
        "30",
        "DELIVERED",
        "DELIVERED=",
        "DELIVERED=0",
        "DELIVERED=-1",
        "DELIVERED=1.5",
        "DELIVERED=36501",
        "PENDING=30",
        "DELIVERED=1;FAILED=2",
    ],
)
def test_a_wrong_period_is_quoted_with_the_remedy(text: str) -> None:
    with pytest.raises(ImproperlyConfigured) as refused:
        retention_days(["EXPIRED=1", text])
    reported = str(refused.value)
    assert reported.startswith(f"{SETTING}: {text!r} is not like DELIVERED=7,FAILED=never")
    assert "\n" not in reported


def test_a_repeated_name_is_refused() -> None:
    with pytest.raises(ImproperlyConfigured, match="each once"):
        retention_days(["FAILED=1", "failed=2"])


def test_the_environment_has_both_settings(tmp_path: object) -> None:
    read = env.read_environment({"INTURN_HOME": str(tmp_path), SETTING: "DELIVERED=7, UNMATCHED=1"})
    assert (read.retention_days["DELIVERED"], read.retention_days["UNMATCHED"]) == (7, 1)
    assert read.retention_unarchived is False
    assert env.read_environment(
        {"INTURN_HOME": str(tmp_path), "INTURN_RETENTION_UNARCHIVED": "yes"}
    ).retention_unarchived
