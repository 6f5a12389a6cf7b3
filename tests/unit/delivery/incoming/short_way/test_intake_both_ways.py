"""Every feature of a post by both ways: by the short way if it is plain, and by the view alone.

The answers and the stored rows are equal, and each feature names the reason of `WhyNotPlain` for
which the short way leaves its post to the view.
"""

import asyncio
import base64
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest

from config.api_schema import schema_document
from delivery.incoming.short_way.intake import Intake
from delivery.models import (
    Callback,
    DedupKey,
    Delivery,
    IdempotencyKey,
    JoinKey,
    JournalEntry,
    Message,
)
from delivery.publishing.plain import LONGEST_BODY, WhyNotPlain
from subscriptions.models import (
    DedupMode,
    JoinMode,
    Kind,
    MatchMode,
    Mode,
    Publisher,
    Scope,
)
from tests.support import factories
from tests.unit.delivery.incoming.short_way.posting import (
    JSON,
    PostAnswer,
    by_view,
    environ_of,
    environ_of_batch,
)
from tests.unit.delivery.senders.running import elsewhere

PUSH: dict[str, Any] = {}
PULL = {"mode": Mode.PULL, "endpoint": ""}
# Reasons that no message has by itself: other tests make these moments.
OF_A_MOMENT = {
    WhyNotPlain.NO_POST,
    WhyNotPlain.NO_GRANT,
    WhyNotPlain.MANY_ITEMS,
    WhyNotPlain.TOO_FAST,
    WhyNotPlain.CONFIGURATION_CHANGED,
    WhyNotPlain.NOT_STORED,
    WhyNotPlain.FAILED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """A kind of message with its receivers; `{world}` in a header's value is their subscriber.

    `why` is the reason for which the last of its `posts` is not plain, `why_in_batch` that of a
    batch of such a message.
    """

    why: WhyNotPlain | None = None
    why_in_batch: WhyNotPlain | str | None = "the same"
    event_type: Mapping[str, Any] = field(default_factory=dict)
    subscriber: Mapping[str, Any] = field(default_factory=dict)
    subscriptions: Sequence[Mapping[str, Any]] = (PUSH, PULL)
    headers: Mapping[str, str] = field(default_factory=lambda: JSON)
    body: bytes = b'{"is": "red"}'
    query: str = ""
    posts: int = 1


def of_event_type(why: WhyNotPlain | None = None, **event_type: Any) -> Feature:
    return Feature(why=why, event_type=event_type)


def of_subscriptions(*subscriptions: Mapping[str, Any], **given: Any) -> Feature:
    return Feature(subscriptions=subscriptions, **given)


def of_subscriber(*subscriptions: Mapping[str, Any], **subscriber: Any) -> Feature:
    return Feature(subscriber=subscriber, subscriptions=subscriptions or (PUSH, PULL))


def of_headers(why: WhyNotPlain | None = None, **given: Any) -> Feature:
    headers = {name.replace("_", "-"): value for name, value in given.items() if name[0].isupper()}
    others = {name: value for name, value in given.items() if not name[0].isupper()}
    return Feature(why=why, headers=JSON | headers, **others)


RED = {"filter": "$$->'Body'->>'is' = 'red'"}
GREEN = {"filter": "$$->'Body'->>'is' = 'green'"}
SHADOW = {"status": "SHADOW"}
JOINED = {"join_name": "order", "join_path": "$$->'Body'->'is'", "join_seconds": 60}
ALL, ONLY_ONE = JOINED | {"join_mode": JoinMode.ALL}, JOINED | {"join_mode": JoinMode.ONLY_ONE}
QUEUE = {"kind": Kind.QUEUE}

FEATURES = {
    "a topic": Feature(),
    "nobody subscribes": of_subscriptions(),
    "a filter": of_subscriptions(RED, GREEN),
    "a header filter string": of_headers(
        Filter_String="proj1008",
        subscriptions=({"header_filter_string": "proj1008"}, {"header_filter_string": "other"}),
    ),
    "no header for a filter string": of_subscriptions({"header_filter_string": "proj1008"}),
    "headers that are not stored": of_headers(Cookie="a=b", Connection="close"),
    "headers that are stored": of_headers(X_Name="\u00fc".encode().decode("latin-1")),
    "a trace": of_headers(Traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
    "a credential for SYNC": of_headers(X_Forward_Authorization="Bearer abc"),
    "curl's content type": Feature(headers={"Content-Type": "application/x-www-form-urlencoded"}),
    "bytes": Feature(
        event_type={"content_type": "image/png"},
        headers={"Content-Type": "image/png"},
        body=b"\xff",
    ),
    "no JSON": Feature(why=WhyNotPlain.REFUSED, body=b"{"),
    "another content type": Feature(
        why=WhyNotPlain.REFUSED, headers={"Content-Type": "text/plain"}
    ),
    "an encoding": of_headers(WhyNotPlain.REFUSED, Content_Encoding="gzip"),
    "a query": Feature(why=WhyNotPlain.QUERY, query="colour=red"),
    "a long body": Feature(
        why=WhyNotPlain.LONG_BODY, why_in_batch=None, body=b'"%s"' % (b"x" * LONGEST_BODY)
    ),
    "a key": of_headers(Idempotency_Key="a"),
    "a used key": of_headers(WhyNotPlain.KEY_IS_USED, Idempotency_Key="a", posts=2),
    "no key": of_headers(WhyNotPlain.REFUSED, Idempotency_Key="\xfc"),
    "a destination": of_headers(WhyNotPlain.DESTINATION, Destination="{world}"),
    "no destination": of_headers(WhyNotPlain.DESTINATION, Destination="nobody"),
    "a destination and a key": of_headers(
        WhyNotPlain.DESTINATION, Destination="{world}", Idempotency_Key="a", posts=2
    ),
    "a callback": of_headers(
        WhyNotPlain.CALLBACK_URL, CallbackURL="https://answers.example/1", event_type=QUEUE
    ),
    "a callback of a topic": of_headers(
        WhyNotPlain.CALLBACK_URL, CallbackURL="https://answers.example/1"
    ),
    "nobody for errors": of_headers(WhyNotPlain.ERRORS_TO, ErrorsTo="-"),
    "no recipient of errors": of_headers(WhyNotPlain.ERRORS_TO, ErrorsTo="nobody"),
    "a reply": of_headers(WhyNotPlain.REPLY_TO, ReplyTo="{event}"),
    "no event type of replies": of_headers(WhyNotPlain.REPLY_TO, ReplyTo="Nothing.Such"),
    "a reserved event type": of_event_type(WhyNotPlain.RESERVED, name="Inturn.{event}"),
    "no event type": of_event_type(WhyNotPlain.NO_EVENT_TYPE, name="{event}", is_allowed=False),
    "an invalid event type": of_event_type(WhyNotPlain.NO_EVENT_TYPE, name="-{event}"),
    "a schema": of_event_type(WhyNotPlain.SCHEMA, json_schema={"type": "object"}),
    "a violated schema": of_event_type(WhyNotPlain.SCHEMA, json_schema={"type": "array"}),
    "SYNC": Feature(why=WhyNotPlain.SYNC, event_type={"kind": Kind.SYNC}, subscriptions=()),
    "SYNC with a key": of_headers(
        WhyNotPlain.SYNC, event_type={"kind": Kind.SYNC}, subscriptions=(), Idempotency_Key="a"
    ),
    "VOLATILE": of_event_type(WhyNotPlain.VOLATILE, durability="VOLATILE"),
    "a time to live": of_event_type(ttl_seconds=60),
    "a queue": Feature(event_type=QUEUE, subscriptions=(PUSH, PUSH, RED, GREEN)),
    "a queue with a mailbox": Feature(event_type=QUEUE, subscriptions=(PULL, PUSH)),
    "a queue with a SHADOW": Feature(
        why=WhyNotPlain.SHADOW, event_type=QUEUE, subscriptions=(PUSH, SHADOW)
    ),
    "FIRST": of_subscriber(GREEN, RED, PUSH, match_mode=MatchMode.FIRST),
    "FIRST with a SHADOW": Feature(
        why=WhyNotPlain.SHADOW,
        subscriber={"match_mode": MatchMode.FIRST},
        subscriptions=(SHADOW, RED, PUSH),
    ),
    "a SHADOW that does not match": of_subscriptions(SHADOW | GREEN, PUSH),
    "a default destination": of_subscriptions({"takes_unmatched": True}, GREEN),
    "a default destination, matched": of_subscriptions({"takes_unmatched": True}, RED),
    "concurrent": of_subscriber(processing="CONCURRENT"),
    "by priority": of_subscriber(processing="CONCURRENT", by_priority=True),
    "a priority": Feature(
        subscriber={"processing": "CONCURRENT", "by_priority": True},
        headers=JSON | {"Priority": "9"},
    ),
    "an inactive subscriber": of_subscriber(status="INACTIVE"),
    "a held subscriber": of_subscriber(status="HELD"),
    "an inactive subscription": of_subscriptions({"status": "INACTIVE"}, PUSH),
    "a held subscription": of_subscriptions({"status": "HELD"}, PULL | {"status": "HELD"}),
    "a script": of_subscriptions({"script": "return message;"}),
    "forwarded headers": of_subscriptions({"forward_headers": ["X-Name"]}),
    "a limit of receives": of_subscriptions(PULL | {"max_receives": 1}),
    "duplicates by key": of_subscriptions(
        {"dedup_mode": DedupMode.KEY}, why=WhyNotPlain.DEDUP, posts=2
    ),
    "duplicates by path": of_subscriptions(
        {"dedup_mode": DedupMode.PATH, "dedup_path": "$$->'Body'->'is'"},
        why=WhyNotPlain.DEDUP,
        posts=2,
    ),
    "duplicates that do not match": of_subscriptions(GREEN | {"dedup_mode": DedupMode.KEY}),
    "a join of all": of_subscriptions(ALL, why=WhyNotPlain.JOIN),
    "a complete join": of_subscriptions(ALL, ALL, why=WhyNotPlain.JOIN, posts=2),
    "a join of the first": of_subscriptions(ONLY_ONE, why=WhyNotPlain.JOIN, posts=2),
    "a join that does not match": of_subscriptions(GREEN | ALL),
}


@dataclass(frozen=True, slots=True)
class World:
    """A publisher with the event type and the receivers of a feature, all of its own."""

    name: str
    publisher: Publisher
    key: str
    event: str
    subscriptions: Sequence[int]

    @classmethod
    def of(cls, feature: Feature, name: str) -> "World":
        fields = dict(feature.event_type)
        is_allowed = fields.pop("is_allowed", True)
        event = fields.pop("name", "{event}").format(event=f"Event.{name}")
        event_type = factories.event_type(event, **fields)
        subscriber = factories.subscriber(name, **feature.subscriber)
        rows = [
            factories.subscription(
                f"{name}-{place}",
                event_type=event_type,
                subscriber=subscriber,
                position=place,
                **given,
            )
            for place, given in enumerate(feature.subscriptions)
        ]
        publisher = factories.publisher(f"by-{name}", all_event_types=is_allowed)
        _, key = factories.api_key(Scope.PUBLISH, publisher=publisher)
        return cls(name, publisher, key, event, [row.pk for row in rows])

    def single(self, feature: Feature) -> tuple[dict[str, Any], bytes]:
        headers = self._headers(feature)
        environ = environ_of(self.event, feature.body, key=self.key, headers=headers)
        return environ | {"QUERY_STRING": feature.query}, feature.body

    def batch(self, feature: Feature) -> tuple[dict[str, Any], bytes]:
        item = {
            "event": self.event,
            "headers": self._headers(feature),
            "body_base64": base64.b64encode(feature.body).decode(),
        }
        body = orjson.dumps([item])
        return environ_of_batch(body, key=self.key, query=feature.query), body

    def plainly(self, value: Any) -> str:
        """Return a value as text without the world's name, and without ids and moments."""
        text = str(value).replace(self.name, "world")
        return re.sub(r"msg_\w+|\d{4}-\d\d-\d\dT[\d:.+]+Z?|\b\d{4,}\b", "#", text)

    def rows(self) -> dict[str, list[str]]:
        """Return the rows of this world's messages, without their ids and moments."""
        messages = list(
            Message.objects.filter(event_type__name=self.event, publisher=self.publisher)
        )
        ids = [message.pk for message in messages]
        joined = Message.objects.filter(event_type__name=self.event, publisher=None).count()
        deliveries = Delivery.objects.filter(subscription_id__in=self.subscriptions)
        found: dict[str, Iterable[Any]] = {
            "messages": [
                (row.headers, row.content_type, row.destination, row.owed, bytes(row.body))
                for row in messages
            ],
            "joined": [joined],
            "deliveries": [self._delivery(row) for row in deliveries.order_by("id")],
            "journal": JournalEntry.objects.filter(message_id__in=ids).values_list("kind", "text"),
            "callbacks": Callback.objects.filter(message_id__in=ids).values_list("url", "hop"),
            "keys": IdempotencyKey.objects.filter(publisher=self.publisher).values_list("key"),
            "dedup": DedupKey.objects.filter(subscription_id__in=self.subscriptions).values_list(
                "key"
            ),
            "joins": JoinKey.objects.filter(
                delivery_id__in=[row.pk for row in deliveries]
            ).values_list("parts"),
        }
        return {name: [self.plainly(row) for row in rows] for name, rows in found.items()}

    def _headers(self, feature: Feature) -> dict[str, str]:
        return {
            name: value.format(world=self.name, event=self.event)
            for name, value in feature.headers.items()
        }

    def _delivery(self, row: Delivery) -> tuple[Any, ...]:
        return (
            self.subscriptions.index(row.subscription_id),
            row.status,
            row.reason,
            row.queue_group,
            row.lane and (row.lane.kind, row.lane.subscriber_id is not None),
            row.priority,
            row.expires_at is not None,
            row.server_started_at is not None,
            row.callback_id,
        )


def seen(world: World, answer: PostAnswer, of_view: PostAnswer) -> tuple[Any, ...]:
    """Return what a client sees; the web server adds the view's headers to a short answer."""
    headers = of_view.headers if answer.is_short else answer.headers
    others = {name: value for name, value in headers.items() if name != "Content-Length"}
    return answer.status, world.plainly(answer.content), world.plainly(others)


async def by_short_way(
    intake: Intake, environ: dict[str, Any], body: bytes
) -> tuple[WhyNotPlain | None, PostAnswer]:
    """Return why the view answered, None if it did not, and the answer."""
    stored = await intake.publish(environ, body)
    if isinstance(stored, WhyNotPlain):
        return stored, await elsewhere(by_view, environ, body)
    return None, PostAnswer(202, orjson.loads(stored.body), {}, is_short=True)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", FEATURES)
def test_both_ways_answer_and_store_the_same(name: str) -> None:
    feature = FEATURES[name]
    worlds = [World.of(feature, f"w{place}") for place in range(4)]
    in_batch = feature.why if feature.why_in_batch == "the same" else feature.why_in_batch

    async def scenario(intake: Intake) -> None:
        for make, why, short, long in (
            (World.single, feature.why, worlds[0], worlds[1]),
            (World.batch, in_batch, worlds[2], worlds[3]),
        ):
            # Repetitions show the effect of an earlier message; the last one has the feature.
            for is_last in [False] * (feature.posts - 1) + [True]:
                reason, answer = await by_short_way(intake, *make(short, feature))
                alone = await elsewhere(by_view, *make(long, feature))
                assert seen(short, answer, alone) == seen(long, alone, alone)
                assert not is_last or reason == why
                rows = await elsewhere(short.rows)
                assert rows == await elsewhere(long.rows)
                assert bool(rows["messages"]) == (alone.status in (200, 202))

    run_with_intake(scenario)


def run_with_intake(scenario: Any) -> None:
    async def run() -> None:
        intake = Intake()
        try:
            await scenario(intake)
        finally:
            await asyncio.to_thread(intake.close)

    asyncio.run(run())


def test_there_is_a_feature_for_each_reason() -> None:
    assert {feature.why for feature in FEATURES.values()} == set(WhyNotPlain) - OF_A_MOMENT | {None}


def test_there_is_a_feature_for_each_header_of_the_reference() -> None:
    publish = schema_document()["paths"]["/api/v1/events/{event_type}/messages"]["post"]
    headers = [each["name"] for each in publish["parameters"] if each["in"] == "header"]
    named = {name.lower().replace("_", "-") for name in headers}
    sent = {name.lower() for feature in FEATURES.values() for name in feature.headers}
    assert named <= sent
