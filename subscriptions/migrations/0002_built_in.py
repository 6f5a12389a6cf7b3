"""The built-in policies, and the event type that reports failures."""

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
]
SAMPLE = {
    "delivery": 42,
    "message": "msg_17",
    "event": "TeamForge.Artifact.Create",
    "subscriber": "crm",
    "subscription": "created",
    "status": "REJECTED",
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


def add_policies(apps: Any, _: Any) -> None:
    policies = apps.get_model("subscriptions", "Policy").objects
    for values in POLICIES:
        policies.get_or_create(name=values["name"], defaults=values | {"is_built_in": True})


def add_event_type(apps: Any, _: Any) -> None:
    event_types = apps.get_model("subscriptions", "EventType").objects
    event_types.get_or_create(
        name="Inturn.Delivery.Failed",
        defaults={
            "kind": "TOPIC",
            "content_type": "application/json",
            "description": "Published by Inturn for each delivery that is settled and was not delivered.",
            "sample": SAMPLE,
        },
    )


class Migration(migrations.Migration):
    dependencies = [("subscriptions", "0001_initial")]

    operations = [
        migrations.RunPython(add_policies, migrations.RunPython.noop),
        migrations.RunPython(add_event_type, migrations.RunPython.noop),
    ]
