"""Invented artifacts of a TeamForge: each creation, update, move and build is a message."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import Any

CREATE = "TeamForge.Artifact.Create"
UPDATE = "TeamForge.Artifact.Update"
MOVE = "TeamForge.Artifact.Move"
BUILD = "TeamForge.Build.Request"

# Relative frequencies of the events, after each has occurred once.
WEIGHTS = {CREATE: 4, UPDATE: 5, MOVE: 2, BUILD: 4}
REMEMBERED = 50

PROJECTS = {
    "proj1008": "Payment Gateway",
    "proj1009": "Mobile App",
    "proj1010": "Data Platform",
    "proj1011": "Customer Portal",
}
TRACKERS = {"tracker1001": "Defects", "tracker1002": "Stories", "tracker1003": "Tasks"}
PRIORITIES = {1: "highest", 2: "high", 3: "medium", 4: "low", 5: "none"}
STATUSES = ("Open", "In progress", "In review", "Done")
USERS = ("apatel", "jsmith", "mgarcia", "lchen", "okowalski")
SUBJECTS = (
    "Login",
    "Export to CSV",
    "Nightly build",
    "Invoice PDF",
    "Search",
    "Password reset",
    "Dashboard",
)
TROUBLES = (
    "fails with a time-out",
    "shows the wrong currency",
    "is slow for large projects",
    "loses the selected filter",
    "needs an audit trail",
    "breaks on umlauts: Grüße",
)

Artifact = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """An event of an artifact; `project` and `priority` are headers, too."""

    event: str
    project: str
    priority: str
    body: dict[str, Any]


class Artifacts:
    """The artifacts so far; the same `random` gives the same sequence."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._number = 1000
        self._recent: deque[Artifact] = deque(maxlen=REMEMBERED)
        # Every event type occurs once at the start, and then at a realistic frequency.
        self._first: Iterator[str] = iter(WEIGHTS)

    def happen(self, *, now: datetime) -> Happening:
        """Create the next event."""
        event = next(self._first, None) or self._random.choices([*WEIGHTS], [*WEIGHTS.values()])[0]
        if event == CREATE:
            return self._create(now=now)
        if event == BUILD:
            return self._build(now=now)
        fields = self._progress() if event == UPDATE else {"project": self._project()}
        return self._change(event, fields, now=now)

    def _create(self, *, now: datetime) -> Happening:
        self._number += 1
        random = self._random
        priority = random.choice([*PRIORITIES])
        artifact = {
            "id": f"artf{self._number}",
            "title": f"{random.choice(SUBJECTS)} {random.choice(TROUBLES)}",
            "project": self._project(),
            "tracker": _reference(TRACKERS, random.choice([*TRACKERS])),
            "status": STATUSES[0],
            "priority": {"value": priority, "name": PRIORITIES[priority]},
            "assignedTo": random.choice(USERS),
            "version": 1,
            "lastModifiedDate": now.isoformat(),
        }
        self._recent.append(artifact)
        return _happening(
            CREATE, artifact, {"original": artifact, "createdBy": random.choice(USERS)}
        )

    def _build(self, *, now: datetime) -> Happening:
        """Create a request to build an artifact: a job for a worker."""
        random = self._random
        artifact = random.choice(self._recent)
        job = {"branch": f"feature/{artifact['id']}", "requestedBy": random.choice(USERS)}
        return _happening(
            BUILD, artifact, {"artifact": artifact["id"], "at": now.isoformat(), **job}
        )

    def _change(self, event: str, fields: dict[str, Any], *, now: datetime) -> Happening:
        index = self._random.randrange(len(self._recent))
        original = self._recent[index]
        changed = {"version": original["version"] + 1, "lastModifiedDate": now.isoformat()}
        updated = self._recent[index] = original | fields | changed
        body = {"original": original, "updated": updated, "modifiedBy": self._random.choice(USERS)}
        return _happening(event, original, body)

    def _progress(self) -> dict[str, Any]:
        return {
            "status": self._random.choice(STATUSES[1:]),
            "assignedTo": self._random.choice(USERS),
        }

    def _project(self) -> dict[str, str]:
        return _reference(PROJECTS, self._random.choice([*PROJECTS]))


def _reference(names: dict[str, str], id: str) -> dict[str, str]:
    return {"id": id, "title": names[id]}


def _happening(event: str, artifact: Artifact, body: dict[str, Any]) -> Happening:
    return Happening(
        event=event,
        project=artifact["project"]["id"],
        priority=artifact["priority"]["name"],
        body={"event": event, **body},
    )
