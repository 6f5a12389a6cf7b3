"""Structured logs: one JSON object per line, one line per fact."""

import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import orjson

# Texts of a request, such as its address, are cut to this length.
LONGEST_QUOTE = 1000

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class EventFormatter(logging.Formatter):
    """Formats a record as JSON: time, level, logger, event, and the values given as `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "event": record.getMessage()[:LONGEST_QUOTE],
        }
        line |= {name: value for name, value in vars(record).items() if name not in _STANDARD}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return orjson.dumps(line, default=_quote).decode()


def _quote(value: object) -> str:
    return str(value)[:LONGEST_QUOTE]


class WrongOrigins(logging.Filter):
    """Passes refused forms with a wrong origin, at most once in SECONDS_BETWEEN.

    They show an administrator that INTURN_BASE_URL names another origin than the proxy passes on.
    Anonymous clients can cause any number of them, and of forms without a cookie.
    """

    SECONDS_BETWEEN = 60.0

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._next_at = float("-inf")

    def filter(self, record: logging.LogRecord) -> bool:
        is_origin = "Origin checking failed" in record.getMessage()
        is_referer = "Referer checking failed" in record.getMessage()
        if not (is_origin or is_referer) or self._clock() < self._next_at:
            return False
        self._next_at = self._clock() + self.SECONDS_BETWEEN
        return True
