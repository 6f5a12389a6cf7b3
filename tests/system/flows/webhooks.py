"""Payloads of real webhooks, and generated ones of the same shapes: the same tests use both.

The generated ones are always available. INTURN_TEST_WEBHOOKS names a file of real ones, which stay
outside the project: one `{"event": "GitHub.Issues.Opened", "body": {…}}` per line.
"""

import json
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.system.flows.generated_webhooks import made_webhooks

PLACE = "INTURN_TEST_WEBHOOKS"
MADE, REAL = "made", "real"
SOURCES = [MADE, REAL] if os.environ.get(PLACE) else [MADE]
# Event types of their own; the others share one.
FREQUENT = 8


@dataclass(frozen=True, slots=True)
class Webhook:
    """One payload: its exact bytes, and their content."""

    event: str
    raw: bytes
    body: dict[str, Any]

    @property
    def area(self) -> str:
        return self.event.split(".")[1]

    @property
    def repository(self) -> str:
        return (self.body.get("repository") or {}).get("full_name") or ""


def read(source: str) -> list[Webhook]:
    """Read all payloads of a source; raise an error if the named file is missing."""
    if source == MADE:
        return [
            Webhook(event=event, raw=raw, body=json.loads(raw)) for event, raw in made_webhooks()
        ]
    path = Path(os.environ[PLACE])
    if not path.is_file():
        pytest.fail(f"{PLACE} names {path}, and there is no such file", pytrace=False)
    return [_webhook(line) for line in path.read_bytes().splitlines()]


def frequent_areas(of: Sequence[Webhook]) -> list[str]:
    return [area for area, _ in Counter(webhook.area for webhook in of).most_common(FREQUENT)]


def _webhook(line: bytes) -> Webhook:
    row = json.loads(line)
    beginning = b'{"event":"%s","body":' % row["event"].encode()
    assert line.startswith(beginning)
    return Webhook(event=row["event"], raw=line[len(beginning) : -1], body=row["body"])
