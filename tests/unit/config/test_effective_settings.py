"""The effective settings and the support bundle show everything but secrets."""

import io
import json
import tarfile
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import call_command

from config.effective_settings import (
    SECRETS,
    effective_settings,
    unknown_settings,
    without_credentials,
)
from config.env_values import FoundSetting
from config.version import version
from tests.support import factories

HIDDEN = "hunter2-hunter2-hunter2-hunter2"


def found(home: Path, **given: str) -> dict[str, FoundSetting]:
    return {
        setting.name: setting for setting in effective_settings({"INTURN_HOME": str(home)} | given)
    }


def test_each_setting_has_its_effective_value_and_its_source(tmp_path: Path) -> None:
    file = tmp_path / "port"
    file.write_text("8123\n")
    shown = found(tmp_path, PORT_FILE=str(file), WEB_THREADS="3")
    assert (shown["PORT"].value, shown["PORT"].source) == ("8123", f"file {file}")
    assert (shown["WEB_THREADS"].value, shown["WEB_THREADS"].source) == ("3", "environment")
    assert (shown["QUEUE_SENDERS"].value, shown["QUEUE_SENDERS"].source) == ("5", "default")
    assert (shown["INTURN_BASE_URL"].value, shown["INTURN_BASE_URL"].source) == (
        "http://127.0.0.1:8123",
        "default",
    )
    assert shown["HISTORY_URL"].value == str(tmp_path / "archive")
    assert shown["SPARK_MASTER"].value == "local[*]"


def test_secrets_are_hidden(tmp_path: Path) -> None:
    given = dict.fromkeys(SECRETS, HIDDEN) | {
        "DATABASE_URL": f"postgresql://me:{HIDDEN}@db.example.com/inturn"
        f"?sslpassword={HIDDEN}&sslmode=require",
        "SPARK_REMOTE": f"sc://spark.example.com:15002/;token={HIDDEN};user_id=me",
    }
    shown = found(tmp_path, **given)
    assert HIDDEN not in str(shown)
    assert shown["INTURN_SECRET_KEY"].value == "(hidden)"
    assert shown["DATABASE_URL"].value.endswith(
        "@db.example.com/inturn?sslpassword=***&sslmode=require"
    )
    assert shown["SPARK_REMOTE"].value.endswith("token=***;user_id=me")
    assert found(tmp_path)["INTURN_SECRET_KEY"].value == "(kept in the home)"


def test_a_misspelt_setting_is_found(tmp_path: Path) -> None:
    given = {
        "INTURN_HOME": str(tmp_path),
        "INTURN_LISTN": "::",
        "INTURN_UP": "x",
        "INTURN_FETCH_KEY_FILE": "",
    }
    assert list(unknown_settings(given)) == ["INTURN_LISTN"]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (
            "GET https://me:pw@a.example/x?api_key=abc&page=2",
            "GET https://***@a.example/x?api_key=***&page=2",
        ),
        ("mail me@example.com", "mail me@example.com"),
        ('{"url": "http://token@a.example"}', '{"url": "http://***@a.example"}'),
        ("my_secret_key=abc&x=1", "my_secret_key=***&x=1"),
    ],
)
def test_credentials_in_texts_are_removed(text: str, left: str) -> None:
    assert without_credentials(text) == left


@pytest.mark.parametrize("piece", ["a", "key", "secret_", "://", "://a", "x@", "token=a&"])
def test_a_log_of_any_content_is_read_in_the_time_of_its_length(piece: str) -> None:
    text = piece * (512 * 1024 // len(piece))
    assert len(without_credentials(text)) <= 2 * len(text)


@pytest.mark.django_db
def test_a_support_bundle_has_the_state_of_the_installation_and_no_payload(tmp_path: Path) -> None:
    factories.delivery(message=factories.message(body=HIDDEN.encode()))
    logs = settings.ENVIRONMENT.home / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    (logs / "of-a-test.log").write_text(f"posted to http://me:{HIDDEN}@a.example\n")
    target = tmp_path / "bundle.tar.gz"
    try:
        call_command("support_bundle", to=target, stdout=io.StringIO(), stderr=io.StringIO())
    finally:
        (logs / "of-a-test.log").unlink()
    with tarfile.open(target) as bundle:
        files = {Path(member.name).name: bundle.extractfile(member) for member in bundle}
        content = {name: file.read().decode() for name, file in files.items() if file}
    assert json.loads(content["about.json"])["inturn"] == version()
    assert json.loads(content["waiting.json"]) == [{"status": "PENDING", "count": 1}]
    assert "0001_initial" in content["migrations.json"]
    assert "posted to http://***@a.example" in content["of-a-test.log"]
    assert HIDDEN not in "".join(content.values())
    # Every statement was accepted.
    texts = [
        name for name, text in content.items() if name.endswith(".json") and text.startswith('"')
    ]
    assert texts == []
    assert target.stat().st_mode & 0o077 == 0
