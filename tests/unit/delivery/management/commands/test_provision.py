"""`provision` creates the administrator and the bootstrap key, once."""

import dataclasses
import io
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth import authenticate, get_user_model
from django.core.management import CommandError, call_command

from subscriptions.models import ApiKey, ConfigurationChange
from tests.unit.delivery.api.client import Caller, refused

PASSWORD = "open sesame, please"

pytestmark = pytest.mark.django_db


def provision(monkeypatch: pytest.MonkeyPatch, **environment: Any) -> str:
    given = {"admin_password": "", "bootstrap_key": ""} | environment
    monkeypatch.setattr(settings, "ENVIRONMENT", dataclasses.replace(settings.ENVIRONMENT, **given))
    output = io.StringIO()
    call_command("provision", stdout=output)
    return output.getvalue()


def test_a_password_is_generated_and_shown_once(monkeypatch: pytest.MonkeyPatch) -> None:
    (line,) = provision(monkeypatch).splitlines()
    beginning, _, password = line.rpartition(" ")
    assert beginning == "administrator admin, password"
    assert authenticate(username="admin", password=password) is not None
    assert provision(monkeypatch) == ""
    assert get_user_model().objects.count() == 1


def test_a_configured_password_is_set_and_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    assert PASSWORD not in provision(monkeypatch, admin_password=PASSWORD)
    assert authenticate(username="admin", password=PASSWORD) is not None
    provision(monkeypatch, admin_password="another long one")
    assert authenticate(username="admin", password=PASSWORD) is not None


@pytest.mark.parametrize(
    ("password", "reported"),
    [
        ("a", "at least 12 characters"),
        ("aaaaaaaaaaaa", "at least 5 different characters"),
        ("password1234", "too common"),
    ],
)
def test_a_weak_password_is_refused(
    monkeypatch: pytest.MonkeyPatch, password: str, reported: str
) -> None:
    with pytest.raises(CommandError, match=f"^INTURN_ADMIN_PASSWORD: .*{reported}"):
        provision(monkeypatch, admin_password=password)
    assert not get_user_model().objects.exists()


def test_an_unneeded_password_is_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    provision(monkeypatch)
    assert provision(monkeypatch, admin_password="a") == ""


def test_the_bootstrap_key_manages_from_the_first_start(monkeypatch: pytest.MonkeyPatch) -> None:
    provision(monkeypatch, bootstrap_key="one")
    provision(monkeypatch, bootstrap_key="one")
    assert Caller("one").get("event-types").status == 200
    assert ApiKey.objects.count() == 1
    assert ConfigurationChange.objects.count() == 1


def test_another_bootstrap_key_replaces_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    provision(monkeypatch, bootstrap_key="one")
    provision(monkeypatch, bootstrap_key="two")
    assert Caller("two").get("event-types").status == 200
    refused(Caller("one").get("event-types"), 401)
    provision(monkeypatch, bootstrap_key="one")
    assert Caller("one").get("event-types").status == 200
    refused(Caller("two").get("event-types"), 401)


def test_a_bootstrap_key_that_a_person_revoked_stays_revoked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    provision(monkeypatch, bootstrap_key="one")
    key = ApiKey.objects.get()
    assert Caller("one").delete(f"keys/{key.pk}").status == 204
    reported = provision(monkeypatch, bootstrap_key="one")
    refused(Caller("one").get("event-types"), 401)
    assert reported.startswith("INTURN_BOOTSTRAP_KEY: the key …one was revoked at ")
    # Nor by setting another key in between.
    assert "revoked" not in provision(monkeypatch, bootstrap_key="two")
    assert "stays revoked" in provision(monkeypatch, bootstrap_key="one")
    refused(Caller("one").get("event-types"), 401)
    refused(Caller("two").get("event-types"), 401)


def test_without_a_bootstrap_key_the_last_one_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    provision(monkeypatch, bootstrap_key="one")
    provision(monkeypatch)
    assert Caller("one").get("event-types").status == 200
