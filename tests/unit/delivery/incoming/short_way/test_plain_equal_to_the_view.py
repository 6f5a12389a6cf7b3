"""Concurrent posts are answered and stored as by the view, one after the other."""

import asyncio
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from subscriptions.models import DedupMode, EventType, Kind, MatchMode, Mode, Publisher, Scope
from tests.support import factories
from tests.unit.delivery.incoming.short_way.posting import (
    JSON,
    PostAnswer,
    Posting,
    by_view,
    environ_of,
    environ_of_batch,
    stored,
    with_intake,
)
from tests.unit.delivery.senders.running import elsewhere

pytestmark = pytest.mark.django_db(transaction=True)

_runs = itertools.count(1)

# `@` stands for the request's place, so each request has keys of its own; keys with `used` were
# used by a request before all of these.
DEEP, LONG = "[" * 97 + "]" * 97, "1" * 5_000
ITEMS = [
    '{"event": "Build.Done", "body": {"is": "green"}}',
    (
        '{"event": "Build.Done", "body": {"is": "red"}, "headers": {"X-Priority": "low", '
        '"Cookie": "a=b"}}'
    ),
    (
        '{ "event" :"Build.Done","body": { "is" : 1.50 , '
        '"n": 123456789012345678901234567890 } ,"headers": {}}'
    ),
    (
        '{"event": "Build.Done", "headers": {"FILTER_STRING": "proj1008"}, '
        '"body": "\u00fc\\u00fc \u2028"}'
    ),
    (
        '{"event": "Build.Done", "body": 1, "body": [2], '
        '"headers": {"content-type": "application/x+json"}}'
    ),
    '{"event": "Build.Done", "body": DEEP}',
    '{"event": "Work.Wanted", "body": 7}',
    '{"event": "Nobody.Cares", "body": null}',
    '{"event": "Unfiltered", "body": 1}',
    '{"event": "Unfiltered", "body": 2, "headers": {"filter-string": "proj1008"}}',
    '{"event": "Image", "body_base64": "/w==", "headers": {"content-type": "image/png"}}',
    '{"event": "Build.Done", "body": {}, "idempotency_key": "key @"}',
    '{"event": "Build.Done", "body": [], "idempotency_key": "key @ 2"}',
    '{"\\u0065vent": "Build.Done", "body": "escaped"}',
]
NOT_PLAIN = [
    '{"event": "Build.Done", "body": {}, "idempotency_key": "used @"}',
    '{"event": "Build.Done", "body": "another", "idempotency_key": "used @"}',
    '{"event": "Build.Done", "body": "another", "idempotency_key": "key @"}',
    '{"event": "Build.Done", "body": {}, "headers": {"Destination": "crm"}}',
    '{"event": "Build.Done", "body": {}, "headers": {"Destination": "nobody"}}',
    '{"event": "Work.Wanted", "body": 1, "headers": {"CallbackURL": "https://answers.example/1"}}',
    '{"event": "Build.Done", "body": {}, "headers": {"ReplyTo": "Build.Done"}}',
    '{"event": "Build.Done", "body": {}, "headers": {"ReplyTo": "Nothing.Such"}}',
    '{"event": "Strict", "body": {}}',
    '{"event": "Once", "body": {}, "idempotency_key": "key @ 3"}',
]
BAD = [
    '{"event": "Build.Done", "body_base64": "e30", "headers": {}}',
    (
        '{"event": "Build.Done", "body_base64": "ew==", '
        '"headers": {"content-type": "application/json"}}'
    ),
    '{"event": "Build.Done", "body": {}, "headers": {"a": "\\u0007"}}',
    '{"event": "Build.Done", "body": {}, "headers": {"Content-Type": "text/plain"}}',
    '{"event": "Build.Done", "body": {}, "headers": {"a b": "c"}}',
    '{"event": "Build.Done", "body": {}, "colour": "red"}',
    '{"event": "Build.Done"}',
    '{"event": "", "body": {}}',
    '{"event": "Nothing", "body": {}}',
    '{"event": "a\\u0000b", "body": {}}',
    '{"event": "Forbidden", "body": {}}',
    '{"event": "Asked", "body": {}}',
    '{"event": "Inturn.Delivery.Failed", "body": {}}',
    '{"event": "Strict", "body": 1}',
    '{"event": "Build.Done", "body": {}, "idempotency_key": "\u00fc"}',
    '{"event": "Build.Done", "body": [DEEP]}',
    '{"event": "Build.Done", "body": "\\ud800"}',
    '{"event": "Build.Done", "body": NaN}',
    '{"event": "Build.Done", "body": LONG}',
    '"event"',
]


@dataclass(frozen=True, slots=True)
class PostRequest:
    """A single post if it has no items."""

    make: Callable[[str, bytes], dict[str, Any]]
    body: str

    def of(self, key: str, place: object) -> tuple[dict[str, Any], bytes]:
        written = self.body.replace("@", str(place)).replace("DEEP", DEEP).replace("LONG", LONG)
        body = written.encode()
        return self.make(key, body), body


def _single(headers: dict[str, str], body: str) -> PostRequest:
    return PostRequest(
        lambda key, sent: environ_of("Build.Done", sent, key=key, headers=headers), body
    )


def _batch(items: Sequence[str], query: str, *, is_lines: bool) -> PostRequest:
    content_type = "application/x-ndjson" if is_lines else "application/json"
    body = "\n".join(items) if is_lines else f"[{', '.join(items)}]"
    return PostRequest(
        lambda key, sent: environ_of_batch(sent, key=key, content_type=content_type, query=query),
        body,
    )


singles = st.builds(
    _single,
    st.sampled_from(
        [JSON, {}, JSON | {"FILTER_STRING": "proj1008"}, {"Content-Type": "text/plain"}]
    ),
    st.sampled_from(["{}", '{"is": "red"}', "{"]),
)
plain = st.sampled_from(ITEMS)
mixed = st.one_of(plain, plain, st.sampled_from(NOT_PLAIN), st.sampled_from(BAD))
batches = st.builds(
    _batch,
    st.one_of(st.lists(plain, max_size=6), st.lists(mixed, max_size=4)),
    st.sampled_from(["", "partial=true", "partial=true", "partial=false", "partial=maybe"]),
    is_lines=st.booleans(),
)


@pytest.fixture
def publishers(transactional_db: None) -> list[tuple[Publisher, str]]:
    """Two publishers that may publish the same, to the same subscriptions."""
    done = factories.event_type("Build.Done")
    crm = factories.subscriber("crm")
    factories.subscription(event_type=done, subscriber=crm)
    factories.subscription(event_type=done, mode=Mode.PULL, endpoint="")
    factories.subscription(event_type=done, filter="$$->'Body'->>'is' = 'red'")
    factories.subscription(event_type=done, header_filter_string="proj1008")
    work = factories.event_type("Work.Wanted", kind=Kind.QUEUE)
    factories.subscription(event_type=work)
    factories.subscription(event_type=work)
    unfiltered = factories.event_type("Unfiltered")
    first = factories.subscriber(match_mode=MatchMode.FIRST)
    for text in ("", "", "proj1008", "proj1009"):
        factories.subscription(event_type=unfiltered, header_filter_string=text, subscriber=first)
        factories.subscription(event_type=unfiltered, header_filter_string=text)
    strict = factories.event_type("Strict", json_schema={"type": "object"})
    once = factories.event_type("Once")
    factories.subscription(event_type=once, dedup_mode=DedupMode.KEY)
    allowed = [done, work, unfiltered, strict, once, factories.event_type("Nobody.Cares")]
    allowed += [factories.event_type("Image", content_type="application/octet-stream")]
    allowed += [factories.event_type("Asked", kind=Kind.SYNC)]
    factories.event_type("Forbidden")
    return [_publisher(allowed) for _ in range(2)]


def _publisher(allowed: list[EventType]) -> tuple[Publisher, str]:
    publisher = factories.publisher(all_event_types=False)
    publisher.event_types.set(allowed)
    return publisher, factories.api_key(Scope.PUBLISH, publisher=publisher)[1]


def _seen(answer: PostAnswer, publisher: Publisher) -> tuple[int, Any, dict[str, str]]:
    """Return an answer with each message's stored rows instead of its id."""
    headers = {name: value for name, value in answer.headers.items() if name != "Content-Length"}
    return answer.status, _whole(answer.content, publisher), headers


def _all_seen(*answers: tuple[PostAnswer, Publisher]) -> list[tuple[int, Any, dict[str, str]]]:
    return [_seen(answer, publisher) for answer, publisher in answers]


def _whole(content: Any, publisher: Publisher) -> Any:
    match content:
        case {"id": str(), **others}:
            return {"stored": stored(content["id"]), **others}
        case {"results": list(results)}:
            return {"results": [_whole(result, publisher) for result in results]}
        case dict():
            return {name: _whole(value, publisher) for name, value in content.items()}
        case str():
            return content.replace(publisher.name, "the publisher")
    return content


@given(requests=st.lists(st.one_of(singles, batches, batches), min_size=1, max_size=8))
@settings(
    max_examples=settings().max_examples // 2,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
def test_together_as_one_by_one(
    publishers: list[tuple[Publisher, str]], requests: list[PostRequest]
) -> None:
    (grouped, key), (lone, lone_key) = publishers
    run = next(_runs)

    async def scenario(posting: Posting) -> None:
        used = _batch(
            ['{"event": "Build.Done", "body": {}, "idempotency_key": "used @"}'], "", is_lines=False
        )
        for place, request in enumerate(requests):
            for each in (key, lone_key) if "used @" in request.body else ():
                await elsewhere(by_view, *used.of(each, f"{run} {place}"))
        together = await asyncio.gather(
            *(
                posting.answer(*request.of(key, f"{run} {place}"))
                for place, request in enumerate(requests)
            )
        )
        for place, (request, answer) in enumerate(zip(requests, together, strict=True)):
            alone = await elsewhere(by_view, *request.of(lone_key, f"{run} {place}"))
            seen = await elsewhere(_all_seen, (answer, grouped), (alone, lone))
            assert seen[0] == seen[1]

    with_intake(scenario)
