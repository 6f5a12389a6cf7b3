"""Requests of unknown clients leave little or nothing in the log."""

import logging

import orjson
import pytest
from django.test import Client, RequestFactory

from config.logs import LONGEST_QUOTE, EventFormatter


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
    assert Client().get("/healthz", headers={"host": "stranger.example"}).status_code == 400
    assert caplog.records == []
