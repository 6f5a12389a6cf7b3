"""Preparations of document tests: an installation with some of everything, and short calls."""

from collections.abc import Mapping
from typing import Any

from delivery.configuration.applying import apply_document, checked_document, plan_document
from delivery.configuration.document.document import DocumentFault, RefusedDocumentError
from delivery.configuration.document.plan import Plan
from delivery.configuration.document.secrets import lookup_of_mapping
from subscriptions.models import (
    Action,
    CommonScript,
    DedupMode,
    EventType,
    Kind,
    MatchMode,
    Mode,
    Policy,
    Processing,
    Publisher,
    Subscriber,
    Subscription,
)
from tests.support import factories

Json = dict[str, Any]

JOIN: Json = {
    "join_mode": "ALL",
    "join_name": "order",
    "join_path": "$$->'Body'->>'order'",
    "join_seconds": 60,
}
SECRET_VALUES = ("header secret", "basic-password", "bearer-token")


def some_of_everything() -> None:
    topic = factories.event_type(
        "TeamForge.Artifact.Create",
        description="Äpfel",
        sample={"id": 1},
        json_schema={"type": "object"},
    )
    sync = factories.event_type("Orders.Check", kind=Kind.SYNC)
    factories.event_type("Builds", kind=Kind.QUEUE, ttl_seconds=60, forward_headers=["x-build-*"])
    CommonScript.objects.create(
        name="dates", description="of days", text="function day(text) { return 1; }\n"
    )
    CommonScript.objects.create(name="setup", runs_first=True, text="$include$dates\nvar region;")
    policy = factories.policy("patient", on_client_error=Action.BLOCK, pause_max_seconds=600)
    abc = factories.subscriber(
        "abc", processing=Processing.CONCURRENT, max_in_flight=8, by_priority=True
    )
    warehouse = factories.subscriber(
        "warehouse",
        match_mode=MatchMode.FIRST,
        description="reads\nslowly",
        queue_id="q-7",
        application="shop",
        status="HELD",
    )
    factories.publisher("teamforge", all_event_types=False).event_types.set([sync, topic])
    factories.publisher("anybody", errors_to="warehouse")
    _subscribe(abc, topic=topic, sync=sync, policy=policy)
    factories.subscription(
        "mailbox",
        subscriber=warehouse,
        event_type=topic,
        mode=Mode.PULL,
        max_receives=5,
        position=3,
    )


def _subscribe(abc: Subscriber, *, topic: EventType, sync: EventType, policy: Policy) -> None:
    factories.subscription(
        "project-1008",
        subscriber=abc,
        event_type=topic,
        policy=policy,
        filter="$$->'Body'->>'id' = '1008'",
        header_filter_string="proj",
        headers={"X-Key": SECRET_VALUES[0], "a": "b"},
        auth={"type": "basic", "username": "inturn", "password": SECRET_VALUES[1]},
        dedup_mode=DedupMode.PATH,
        dedup_path="$$->'Body'->>'id'",
        forward_headers=["traceparent", "x-*"],
        **JOIN,
        script="$include$dates\n$outmessage = day($inmessage.at);",
    )
    factories.subscription(
        "all",
        subscriber=abc,
        event_type=topic,
        auth={"type": "bearer", "token": SECRET_VALUES[2]},
        status="HELD",
    )
    factories.subscription(
        "check",
        subscriber=abc,
        event_type=sync,
        timeout_seconds=5,
        status="INACTIVE",
        forward_authorization=True,
    )


def remove_everything() -> None:
    Subscription.objects.all().delete()
    Publisher.objects.all().delete()
    Subscriber.objects.all().delete()
    Policy.objects.filter(is_built_in=False).delete()
    CommonScript.objects.all().delete()
    EventType.objects.exclude(name__startswith="Inturn.").delete()


def plan(content: Any, *, secrets: Mapping[str, str] | None = None, prune: bool = False) -> Plan:
    return plan_document(
        checked_document(content, lookup=lookup_of_mapping(secrets or {}), prune=prune)
    )


def apply(content: Any, *, secrets: Mapping[str, str] | None = None, prune: bool = False) -> Plan:
    document = checked_document(content, lookup=lookup_of_mapping(secrets or {}), prune=prune)
    return apply_document(document, digest=plan_document(document).digest, actor="tester")


def faults(content: Any, **options: Any) -> list[DocumentFault]:
    """Return the faults for which a document is refused."""
    try:
        plan(content, **options)
    except RefusedDocumentError as error:
        return error.faults
    raise AssertionError("it was not refused")


def document(**sections: Any) -> Json:
    return {"format": 1, **sections}


def reported(planned: Plan) -> list[str]:
    return [f"{change.verb} {change.label}" for change in planned.changes]
