"""The doctor's checks of the installation: base URL, proxy, clock and disk."""

from pathlib import Path

import pytest
from django.db import connection
from pytest_django.live_server_helper import LiveServer

from delivery.management.doctor.findings import CheckResult, Severity, check_report
from delivery.management.doctor.installation import (
    check_base_url,
    check_callbacks,
    check_clock,
    check_disk,
    check_filter_string,
    check_installation,
    check_ready,
)
from tests.support.receivers import Answer, Receiver

CLOSED = "http://127.0.0.1:9"


@pytest.mark.django_db
def test_no_probe_is_published_where_nothing_answers() -> None:
    findings = {
        found.check: found for found in check_installation(CLOSED, key="none", home=Path("/"))
    }
    assert findings["proxy"].severity is Severity.FAILED
    assert "does not answer" in findings["proxy"].text
    assert "FILTER_STRING" not in findings


def test_other_server_at_the_base_url_is_no_ready_inturn(receiver: Receiver) -> None:
    shop = receiver.endpoint("readyz")
    shop.always(Answer(200, body=b"welcome"))
    found = check_ready(shop.url.removesuffix("/readyz"))
    assert found.severity is Severity.FAILED
    assert "answers 200" in found.text


@pytest.mark.django_db(transaction=True)
def test_refused_probe_says_what_the_server_answered(live_server: LiveServer) -> None:
    found = check_filter_string(live_server.url, key="inturn_wrong")
    assert found.severity is Severity.FAILED
    assert "401" in found.text


@pytest.mark.django_db(transaction=True)
def test_callbacks_arrive_at_inturn(live_server: LiveServer) -> None:
    assert check_callbacks(live_server.url).severity is Severity.OK


def test_proxy_that_answers_callbacks_itself_is_found(receiver: Receiver) -> None:
    proxy = receiver.endpoint("callbacks/doctor")
    proxy.always(Answer(404, body=b"not found"))
    found = check_callbacks(proxy.url.removesuffix("/callbacks/doctor"))
    assert (found.severity, "answers 404, and not Inturn's" in found.text) == (
        Severity.FAILED,
        True,
    )


@pytest.mark.parametrize(
    ("base_url", "severity", "words"),
    [
        ("http://127.0.0.1:8000", Severity.WARNING, "this machine only"),
        ("http://[::1]:8000", Severity.WARNING, "this machine only"),
        ("http://hooks.example", Severity.WARNING, "not encrypted"),
        ("https://hooks.example/inturn", Severity.OK, "https://hooks.example/inturn"),
    ],
)
def test_base_url_is_judged_by_host_and_scheme(
    base_url: str, severity: Severity, words: str
) -> None:
    found = check_base_url(base_url)
    assert (found.severity, words in found.text) == (severity, True)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("shift", "severity", "words"),
    [
        ("0 s", Severity.OK, "within a second"),
        ("10 s", Severity.WARNING, "10 s behind"),
        ("-5 min", Severity.FAILED, "300 s ahead"),
    ],
)
def test_clock_is_compared_with_the_database(shift: str, severity: Severity, words: str) -> None:
    with connection.cursor() as cursor:
        # This schema's function is found first: it shifts the database's clock.
        cursor.execute(
            "CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS "
            f"$$ SELECT pg_catalog.clock_timestamp() + interval '{shift}' $$"
        )
        cursor.execute("SET LOCAL search_path = public, pg_catalog")
    found = check_clock()
    assert (found.severity, words in found.text) == (severity, True)


def test_disk_is_checked_before_home_exists(tmp_path: Path) -> None:
    found = check_disk(tmp_path / "var")
    assert "GB are free" in found.text


def test_report_begins_with_the_worst() -> None:
    findings = [
        CheckResult(check="a", severity=Severity.OK, text="well"),
        CheckResult(check="b", severity=Severity.FAILED, text="broken", advice="Mend it."),
    ]
    assert [line.split() for line in check_report(findings)] == [
        ["FAILED", "b", "broken"],
        ["→", "Mend", "it."],
        ["OK", "a", "well"],
    ]
