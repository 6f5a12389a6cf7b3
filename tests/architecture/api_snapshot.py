"""The OpenAPI document of the last release, and the command that stores it at a release.

There is none before the first release.

python -m tests.architecture.api_snapshot
"""

import json
import sys
from pathlib import Path
from typing import Any

from tests.architecture.api_compatibility import Documents

SNAPSHOT = Path(__file__).with_name("api_snapshot.json")
ADVICE = (
    "Clients of the last version would fail. Keep the old way beside the new one. If it must "
    "break: describe it in .project/CHANGES.md under *To do*, raise the version, and run "
    "`python -m tests.architecture.api_snapshot --break`."
)
# Text for people: no client depends on it.
PROSE = ("description", "summary", "title", "example", "examples", "externalDocs", "tags")


def stored_document() -> dict[str, Any] | None:
    """Return the document of the last release; None before the first."""
    return json.loads(SNAPSHOT.read_text()) if SNAPSHOT.exists() else None


def current_document() -> dict[str, Any]:
    """Return the document of this checkout without prose, with the version of Inturn."""
    from config.api_schema import schema_document
    from config.version import version

    text = json.dumps(schema_document(), sort_keys=True)
    plain: dict[str, Any] = _without_prose(json.loads(text))
    return plain | {"info": {"title": "Inturn", "version": version()}}


def _without_prose(node: Any, *, names: bool = False) -> Any:
    """Remove texts; the keys of `properties` and the like are names of fields, and stay."""
    if isinstance(node, list):
        return [_without_prose(item) for item in node]
    if not isinstance(node, dict):
        return node
    holds_names = {"properties", "schemas", "paths", "responses", "content", "headers"}
    return {
        key: _without_prose(value, names=key in holds_names and not names)
        for key, value in node.items()
        if names or key not in PROSE
    }


def store_snapshot() -> None:
    stored = stored_document() or current_document()
    found = list(Documents(stored, current_document()).breaks())
    if found and "--break" not in sys.argv:
        sys.exit("\n".join([*found, ADVICE]))
    SNAPSHOT.write_text(json.dumps(current_document(), indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    import os

    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    store_snapshot()
