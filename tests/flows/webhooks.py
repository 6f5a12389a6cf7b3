"""The 329 real payloads, which stay outside the project."""

import json
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from config.env import CHECKOUT

COUNT = 329
PLACE = "INTURN_TEST_WEBHOOKS"
# Event types of their own; the rest share one.
FREQUENT = 8


@dataclass(frozen=True, slots=True)
class Webhook:
    """One payload: the exact bytes, and what they say."""

    event: str
    raw: bytes
    body: dict[str, Any]

    @property
    def area(self) -> str:
        return self.event.split(".")[1]

    @property
    def repository(self) -> str:
        return (self.body.get("repository") or {}).get("full_name") or ""


def read() -> list[Webhook]:
    """Read them all; a missing file is a failure that tells where it belongs."""
    given = os.environ.get(PLACE)
    path = Path(given) if given else CHECKOUT.parent / "shared" / "data" / "github-webhooks.jsonl"
    if not path.is_file():
        pytest.fail(
            f"{path} is missing: put the real payloads there, beside the checkout, or set {PLACE} to the file",
            pytrace=False,
        )
    found = [_webhook(line) for line in path.read_bytes().splitlines()]
    assert len(found) == COUNT
    return found


def frequent_areas(of: Sequence[Webhook]) -> list[str]:
    return [area for area, _ in Counter(webhook.area for webhook in of).most_common(FREQUENT)]


def _webhook(line: bytes) -> Webhook:
    row = json.loads(line)
    beginning = b'{"event":"%s","body":' % row["event"].encode()
    assert line.startswith(beginning)
    return Webhook(event=row["event"], raw=line[len(beginning) : -1], body=row["body"])
