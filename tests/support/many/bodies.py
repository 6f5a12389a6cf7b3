"""The beginnings of bodies of about 1 KiB, cut from real payloads or generated."""

import json
import random
from pathlib import Path
from typing import Any

BYTES = 900
MADE = 300
# Words searched for by people.
_WORDS = [
    *(
        "artifact",
        "assigned",
        "branch",
        "build",
        "broken",
        "closed",
        "comment",
        "commit",
        "created",
        "customer",
    ),
    *(
        "deployed",
        "document",
        "due",
        "escalated",
        "field",
        "fixed",
        "import",
        "invoice",
        "issue",
        "label",
        "merged",
    ),
    *(
        "milestone",
        "opened",
        "order",
        "owner",
        "package",
        "paid",
        "parcel",
        "pipeline",
        "priority",
        "project",
    ),
    *(
        "queue",
        "release",
        "repository",
        "review",
        "route",
        "sensor",
        "shipped",
        "sprint",
        "submitted",
        "task",
    ),
]


def beginnings(real: Path | None) -> list[str]:
    """Return JSON objects without the closing brace: the caller appends the unique part of a body.

    `real` is a file with a `{"event": …, "body": {…}}` per line.
    """
    chance = random.Random(5)
    if real is not None and real.is_file():
        bodies = [json.loads(line)["body"] for line in real.read_text().splitlines()]
        return [_open(cut(body, BYTES)) for body in bodies]
    return [_open(made(chance)) for _ in range(MADE)]


def cut(body: dict[str, Any], budget: int) -> dict[str, Any]:
    """Return the members of an object as far as they fit, and a part of larger nested objects."""
    kept: dict[str, Any] = {}
    for name, value in body.items():
        length = len(json.dumps(value)) + len(name) + 4
        if length <= budget:
            kept[name] = value
        elif isinstance(value, dict) and budget > 100:
            kept[name] = cut(value, budget // 2)
            length = len(json.dumps(kept[name])) + len(name) + 4
        else:
            continue
        budget -= length
    return kept


def made(chance: random.Random) -> dict[str, Any]:
    text = " ".join(chance.choices(_WORDS, k=90))
    return {
        "action": chance.choice(_WORDS),
        "project": {
            "id": f"proj{chance.randrange(1000, 1100)}",
            "name": " ".join(chance.choices(_WORDS, k=3)),
        },
        "original": {
            "title": " ".join(chance.choices(_WORDS, k=8)),
            "description": text[: BYTES - 250],
        },
    }


def _open(body: dict[str, Any]) -> str:
    return json.dumps(body | {"generated": True}, ensure_ascii=False).replace("\\u0000", "")[:-1]
