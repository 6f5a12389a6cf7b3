"""Requests of unknown clients leave little or nothing in the log."""

import logging

import orjson
import pytest
from django.test import Client, RequestFactory

from config.logs import LONGEST_QUOTE, EventFormatter, WrongOrigins


def test_a_long_address_is_quoted_only_in_part() -> None:
    address = f"/{'a' * 100_000}"
    record = logging.makeLogRecord(
        {
            "msg": "Internal Server Error: %s",
            "args": (address,),
            "request": RequestFactory().get(address),
        }
    )
    line = orjson.loads(EventFormatter().format(record))
    assert len(line["event"]) == len(line["request"]) == LONGEST_QUOTE


def test_missing_pages_and_wrong_hosts_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    assert Client().get("/nowhere").status_code == 404
    assert Client().get("/admin/login/", headers={"host": "stranger.example"}).status_code == 400
    assert caplog.records == []


def csrf_record(reason: str) -> logging.LogRecord:
    return logging.makeLogRecord({"msg": "Forbidden (%s): %s", "args": (reason, "/admin/login/")})


def test_of_refused_forms_only_wrong_origins_are_logged_and_one_a_minute() -> None:
    now = 0.0
    wanted = WrongOrigins(lambda: now)
    assert not wanted.filter(csrf_record("CSRF cookie not set."))
    origin = csrf_record("Origin checking failed - https://a does not match any trusted origins.")
    assert [wanted.filter(origin) for _ in range(3)] == [True, False, False]
    assert not wanted.filter(csrf_record("Referer checking failed - no Referer."))
    now = 61.0
    assert wanted.filter(csrf_record("Referer checking failed - no Referer."))


def test_the_settings_use_that_filter(caplog: pytest.LogCaptureFixture) -> None:
    browser = Client(enforce_csrf_checks=True)
    for _ in range(3):
        assert browser.post("/admin/login/", {"username": "x"}).status_code == 403
    assert [record.name for record in caplog.records] == []
