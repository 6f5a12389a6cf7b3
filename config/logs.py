"""Structured logs: one JSON object per line, one line per fact."""

import logging
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
