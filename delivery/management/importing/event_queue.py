"""Import of the Event Queue's queues: a JSON list of `{"queueId": …, "name": …, "events": […]}`.

Only queueId is required. `name` is the user name of the queue's client, `events` the queue's event
types. The Event Queue's 30 seconds and four days are Inturn's defaults too.
"""

from collections.abc import Mapping
from typing import Any

from delivery.management.importing.import_result import Imported, SourceError
from delivery.management.importing.source import parse_source

_EXPECTED = 'A JSON list of {"queueId": …, "name": …, "events": […]} was expected.'


def import_event_queue(text: str) -> Imported:
    """Convert the list; raises SourceError for any other input."""
    queues = parse_source(text)
    if not isinstance(queues, list):
        raise SourceError(_EXPECTED)
    for number, queue in enumerate(queues, start=1):
        if not _is_queue(queue):
            raise SourceError(f"{_EXPECTED} Entry {number} is none: only queueId is required.")
    imported = Imported()
    for queue in queues:
        _add(imported, imported.source_object(queue, noun="key"))
    return imported


def _is_queue(queue: Any) -> bool:
    if not isinstance(queue, dict):
        return False
    events = queue.get("events", [])
    texts = [
        queue.get("queueId"),
        queue.get("name", ""),
        *(events if isinstance(events, list) else [None]),
    ]
    return bool(queue.get("queueId")) and all(isinstance(text, str) for text in texts)


def _add(imported: Imported, queue: Mapping[str, Any]) -> None:
    queue_id, events = queue["queueId"], queue.get("events")
    subscriber = imported.name_of(queue.get("name") or queue_id, what="subscriber")
    if not imported.add("subscribers", {"name": subscriber, "queue_id": queue_id}):
        imported.impossible.append(
            f"queue {queue_id}: {subscriber} has a queue already; give it another name"
        )
        return
    if not events:
        imported.differently.append(
            f"queue {queue_id}: the source names no events, so its event type is {queue_id}"
        )
    for event in events or [queue_id]:
        event_type = imported.name_of(event, what="event type")
        imported.add("event_types", {"name": event_type})
        entry = {
            "subscriber": subscriber,
            "name": event_type,
            "event_type": event_type,
            "mode": "PULL",
        }
        imported.add("subscriptions", entry)
    imported.impossible.append(
        f"queue {queue_id}: unread messages and the client's password stay in the old system; "
        "let the client empty it, or use `import backlog`, "
        f"and give {subscriber} a fetch key or a queue_password"
    )
