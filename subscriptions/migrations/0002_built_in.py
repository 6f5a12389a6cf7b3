"""The built-in policies, and the event types of what Inturn publishes itself."""

from typing import Any

from django.db import migrations

TEAMFORGE = (
    "As TeamForge. An endpoint that cannot be reached blocks its subscriber until it answers. "
    "One that answers 5xx is passed over: the next message is sent, this one again later. 4xx and 3xx are final."
)
STRICT = (
    "Nothing overtakes a failed message: the subscriber is blocked until the endpoint takes it. "
    "4xx and 3xx are final. Messages that may have been sent already are held until a person decides."
)
WORKFRONT_2017 = (
    "As Workfront in 2017. A failed delivery leaves the flow of fresh messages and is tried again by the retry "
    "lane, 12 times, 10 minutes apart; then it is FAILED."
)
WORKFRONT_48H = (
    "As Workfront today. A failed delivery is tried again by the retry lane, 11 times, after 85 s at first and "
    "ever more seldom, within 48 hours; then it is FAILED."
)
WEBMETHODS = (
    "As webMethods. An endpoint that fails is tried again in place, every 10 s, up to 5 attempts; then the "
    "message is FAILED and the next is sent. 4xx and 3xx are final. What is in doubt is held. "
    "Copy it to suspend the lane and probe instead, to suspend after a rejection, or to try until it succeeds."
)
STANDARD_WEBHOOKS = (
    "What the Standard Webhooks specification recommends. Whatever fails is tried again by the retry lane, 9 times "
    "within 76 hours; then it is FAILED. 429 and 503 block the lane, for as long as Retry-After says. 410 freezes the "
    "URL until a person releases it."
)
ANSWERS = ["on_unavailable", "on_server_error", "on_rate_limited", "on_client_error", "on_redirect"]
TO_RETRY_LANE = dict.fromkeys(["on_unreachable", *ANSWERS], "RETRY_LANE")
POLICIES = [
    {"name": "teamforge", "description": TEAMFORGE},
    {
        "name": "strict",
        "description": STRICT,
        "in_doubt": "HOLD",
        **dict.fromkeys(["on_unavailable", "on_server_error", "on_rate_limited"], "BLOCK"),
    },
    {
        "name": "workfront-2017",
        "description": WORKFRONT_2017,
        **TO_RETRY_LANE,
        "retry_schedule": "FIXED",
        "retry_seconds": 600,
        "max_attempts": 13,
    },
    {
        "name": "workfront-48h",
        "description": WORKFRONT_48H,
        **TO_RETRY_LANE,
        "retry_schedule": "EXPONENTIAL",
        "retry_seconds": 84.8,
        "max_attempts": 12,
        "breaks_circuit": True,
    },
    {
        "name": "webmethods",
        "description": WEBMETHODS,
        **dict.fromkeys(["on_unreachable", "on_unavailable", "on_server_error", "on_rate_limited"], "IN_PLACE"),
        "on_client_error": "REJECT",
        "on_redirect": "REJECT",
        "in_doubt": "HOLD",
        "retry_schedule": "FIXED",
        "retry_seconds": 10,
        "max_attempts": 5,
    },
    {
        "name": "standard-webhooks",
        "description": STANDARD_WEBHOOKS,
        **TO_RETRY_LANE,
        "blocks_when_overloaded": True,
        "retry_schedule": "LISTED",
        "retry_waits": "5,300,1800,7200,18000,36000,50400,72000,86400",
        "retry_jitter": 0.1,
        "max_attempts": 10,
        "breaks_circuit": True,
        "freezes_when_gone": True,
    },
]
FAILED = {
    "delivery": 42,
    "message": "msg_17",
    "publisher": "teamforge",
    "published_at": "2026-11-21T09:59:59Z",
    "destination": None,
    "event": "TeamForge.Artifact.Create",
    "subscriber": "crm",
    "subscription": "created",
    "status": "REJECTED",
    "redelivery": "",
    "attempts": 1,
    "attempt": {
        "number": 1,
        "started_at": "2026-11-21T10:00:00Z",
        "duration_ms": 12,
        "outcome": "CLIENT_ERROR",
        "status_code": 410,
        "error": "",
    },
}
INCIDENT = {
    "incident": 7,
    "change": "opened",
    "by": None,
    "kind": "LANE",
    "state": "OPEN",
    "severity": "WARNING",
    "subject": "crm is BLOCKED",
    "cause": "500: Internal Server Error",
    "lane": "crm",
    "subscriber": "crm",
    "subscription": "created",
    "url": None,
    "message": "msg_17",
    "delivery": 17825792,
    "count": 0,
    "waiting": 1000,
    "since": "2026-11-21T10:00:00Z",
    "opened_at": "2026-11-21T10:05:00Z",
    "closed_at": None,
    "lasted_seconds": None,
    "next_try_at": "2026-11-21T10:06:00Z",
    "acknowledged_by": None,
    "assignee": None,
    "link": "https://inturn.example.com/admin/delivery/incident/7/",
}
# Name → description and sample.
EVENT_TYPES = {
    "Inturn.Delivery.Failed": (
        "Published by Inturn for each delivery that is settled and was not delivered.",
        FAILED,
    ),
    "Inturn.Incident.Opened": (
        "Published by Inturn when something goes wrong: once for each cause.",
        INCIDENT,
    ),
    "Inturn.Incident.Changed": (
        "Published by Inturn when an open incident gets worse, or a person acts on it.",
        INCIDENT,
    ),
    "Inturn.Incident.Closed": (
        "Published by Inturn when the cause of an incident is gone.",
        INCIDENT,
    ),
}


def add_policies(apps: Any, _: Any) -> None:
    policies = apps.get_model("subscriptions", "Policy").objects
    for values in POLICIES:
        policies.get_or_create(name=values["name"], defaults=values | {"is_built_in": True})


def add_event_types(apps: Any, _: Any) -> None:
    event_types = apps.get_model("subscriptions", "EventType").objects
    for name, (description, sample) in EVENT_TYPES.items():
        event_types.get_or_create(
            name=name,
            defaults={
                "kind": "TOPIC",
                "content_type": "application/json",
                "description": description,
                "sample": sample,
            },
        )


class Migration(migrations.Migration):
    dependencies = [("subscriptions", "0001_initial")]

    operations = [
        migrations.RunPython(add_policies, migrations.RunPython.noop),
        migrations.RunPython(add_event_types, migrations.RunPython.noop),
    ]
