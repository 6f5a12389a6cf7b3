"""`import backlog`: an old broker's undelivered messages, in order, before newer ones, once."""

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from delivery.management.importing import backlog
from delivery.management.importing.backlog_lines import BacklogLines
from delivery.models import Delivery, ImportedKey, Message, Status
from delivery.publishing.drafts import Draft
from delivery.publishing.publish import publish
from subscriptions.models import DedupMode, EventType, Publisher, Subscription, SubscriptionStatus
from tests.support import factories
from tests.support.sequences import kept_sequences  # noqa: F401 - a fixture

pytestmark = pytest.mark.usefixtures("kept_sequences")


@pytest.fixture(autouse=True)
def _publisher(db: None) -> None:
    factories.publisher("shop")


@pytest.fixture
def event_type(db: None) -> EventType:
    return factories.event_type("Orders.Created")


@pytest.fixture
def subscription(event_type: EventType) -> Subscription:
    return factories.subscription(
        "orders", subscriber=factories.subscriber("crm"), event_type=event_type
    )


def line(number: int, **fields: Any) -> dict[str, Any]:
    return {"key": f"old-{number}", "event": "Orders.Created", "body": {"n": number}} | fields


def written(folder: Path, lines: Sequence[dict[str, Any]], name: str = "backlog.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def run(*arguments: Any, **options: Any) -> tuple[int, str]:
    """Return the exit code and the output of `import`."""
    out = io.StringIO()
    try:
        call_command("import", *arguments, stdout=out, **options)
    except SystemExit as ended:
        return int(ended.code or 0), out.getvalue()
    except CommandError as error:
        return 1, f"{out.getvalue()}{error}"
    return 0, out.getvalue()


def imported(path: Path, *more: str) -> tuple[int, str]:
    return run("backlog", str(path), "--publisher", "shop", "--apply", *more)


def bodies() -> list[Any]:
    """Return the bodies in the order in which their lane sends them."""
    waiting = (
        Delivery.objects.filter(status=Status.PENDING).order_by("id").select_related("message")
    )
    return [json.loads(bytes(delivery.message.body))["n"] for delivery in waiting]


def publish_one(event_type: EventType, number: int, **headers: str) -> None:
    body = json.dumps({"n": number}).encode()
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    publish(Publisher.objects.get(), [Draft(event_type=event_type, headers=headers, body=body)])


def test_without_apply_it_reports_and_changes_nothing(
    subscription: Subscription, tmp_path: Path
) -> None:
    path = written(tmp_path, [line(number) for number in range(3)])
    code, out = run("backlog", str(path), "--publisher", "shop")
    assert code == 2
    assert "Taken over (3)\n  crm/orders: 3 deliveries\n" in out
    assert "Nothing is changed. --apply imports 3 messages with 3 deliveries.\n" in out
    assert not Message.objects.exists()
    assert not ImportedKey.objects.exists()


def test_messages_are_stored_in_the_order_of_the_file(
    subscription: Subscription, tmp_path: Path
) -> None:
    lines = [line(number, published_at="2026-11-01T10:00:00") for number in range(5)]
    assert imported(written(tmp_path, lines))[0] == 0
    assert bodies() == [0, 1, 2, 3, 4]
    first = Message.objects.earliest("id")
    assert bytes(first.body) == b'{"n": 0}'
    assert first.publisher == Publisher.objects.get()
    assert first.headers == {
        "content-type": "application/json",
        "idempotency-key": "old-0",
        "original-id": "old-0",
        "original-published-at": "2026-11-01T10:00:00+00:00",
    }


def test_a_second_import_adds_nothing(subscription: Subscription, tmp_path: Path) -> None:
    path = written(tmp_path, [line(1), line(2), line(2)])
    imported(path)
    code, out = imported(path)
    assert (code, bodies()) == (0, [1, 2])
    assert "2 lines imported before, and left out" in out
    assert "left out: 1 repetition of an earlier line of the file" in out


def test_after_a_kill_in_the_middle_the_rest_is_imported(
    subscription: Subscription, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backlog, "BATCH_LINES", 2)
    path = written(tmp_path, [line(number) for number in range(5)])
    checked = backlog.Backlog(BacklogLines(path, "old-broker", "shop"))

    def kill(found: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        checked.apply(None, progress=kill)
    assert bodies() == [0, 1]
    assert imported(path)[0] == 0
    assert bodies() == [0, 1, 2, 3, 4]


def test_reserved_places_are_before_messages_published_since(
    subscription: Subscription, event_type: EventType, tmp_path: Path
) -> None:
    publish_one(event_type, 100)
    assert run("reserve", "3")[0] == 0
    publish_one(event_type, 101)
    path = written(tmp_path, [line(number) for number in range(3)])
    assert "sent before all messages published since" in imported(path)[1]
    publish_one(event_type, 102)
    assert bodies() == [100, 0, 1, 2, 101, 102]


def test_a_backlog_longer_than_the_reservation_comes_after_the_waiting(
    subscription: Subscription, event_type: EventType, tmp_path: Path
) -> None:
    run("reserve", "1")
    publish_one(event_type, 101)
    _, out = imported(written(tmp_path, [line(1), line(2)]))
    assert (
        "sent after the backlog of crm, 1 delivery, because no places were reserved for it" in out
    )
    assert bodies() == [101, 1, 2]


def test_listed_subscriptions_get_it_whatever_their_filter_and_status(
    subscription: Subscription, event_type: EventType, tmp_path: Path
) -> None:
    inactive = factories.subscription(
        "two",
        subscriber=subscription.subscriber,
        event_type=event_type,
        filter="$$->'Body'->>'n' = 'x'",
        status=SubscriptionStatus.INACTIVE,
    )
    _, out = imported(written(tmp_path, [line(1, subscriptions=["crm/two"]), line(2)]))
    assert "waits until they are made ACTIVE: crm/two" in out
    rows = Delivery.objects.order_by("id").values_list("subscription", flat=True)
    assert list(rows) == [inactive.pk, subscription.pk]


def test_csv_has_bodies_as_text_and_several_subscriptions(
    subscription: Subscription, event_type: EventType, tmp_path: Path
) -> None:
    factories.subscription("two", subscriber=subscription.subscriber, event_type=event_type)
    path = tmp_path / "backlog.csv"
    path.write_text(
        "key,event,content_type,body,headers,subscriptions\r\n"
        '1,Orders.Created,application/json,"{""n"": 7}","{""X-Id"": ""7""}",crm/orders; crm/two\r\n'
    )
    assert imported(path)[0] == 0
    message = Message.objects.get()
    assert (bytes(message.body), message.headers["x-id"]) == (b'{"n": 7}', "7")
    assert Delivery.objects.count() == 2


def test_what_inturn_has_already_is_left_out(
    subscription: Subscription, event_type: EventType, tmp_path: Path
) -> None:
    Subscription.objects.update(dedup_mode=DedupMode.KEY)
    publish_one(event_type, 1, idempotency_key="old-1")
    _, out = imported(written(tmp_path, [line(1), line(2)]))
    assert "deliveries left out, because Inturn has a message with the same dedup key" in out
    assert bodies() == [1, 2]


def test_a_message_published_again_after_the_import_is_not_sent_twice(
    subscription: Subscription, event_type: EventType, tmp_path: Path
) -> None:
    Subscription.objects.update(dedup_mode=DedupMode.KEY)
    imported(written(tmp_path, [line(1)]))
    Delivery.objects.update(status=Status.DELIVERED, settled_at=Message.objects.get().published_at)
    publish_one(event_type, 1, idempotency_key="old-1")
    assert Delivery.objects.latest("id").status == Status.DUPLICATE


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"key": ""}, "key: write the id of the message in the old broker"),
        ({"event": "No.Such"}, "there is no event type 'No.Such'; create it first."),
        ({"publisher": "nobody"}, "there is no publisher 'nobody'; create it first."),
        ({"subscriptions": ["crm/none"]}, "there is no 'crm/none'; write subscriber/subscription"),
        ({"subscriptions": []}, "write a list of subscriber/subscription"),
        ({"published_at": "yesterday"}, "'yesterday' is no time; write 2026-11-22T10:15:00Z."),
        ({"header": {}}, "there is no field 'header'; known are body, body_base64"),
        ({"headers": {"a": 1}}, "headers: Give an object of header names and values"),
        ({"body_base64": "?", "body": None}, "body_base64: This is not base64."),
        ({"key": "old-1", "body": 2}, "line 1 has the same key and differs."),
    ],
)
def test_a_faulty_line_refuses_the_file(
    subscription: Subscription, tmp_path: Path, wrong: dict[str, Any], reason: str
) -> None:
    second = {name: value for name, value in (line(2) | wrong).items() if value is not None}
    path = written(tmp_path, [line(1), second])
    code, out = imported(path)
    assert code == 1
    assert "  line 2: " in out
    assert reason in out
    assert not Message.objects.exists()
    assert imported(path, "--skip-faulty")[0] == 0
    assert bodies() == [1]


def test_faulty_lines_are_listed_in_the_order_of_the_file(
    subscription: Subscription, tmp_path: Path
) -> None:
    differs = line(1, body="another")
    _, out = imported(written(tmp_path, [line(1), differs, {"key": "no-event"}]))
    assert out.index("line 2: line 1 has the same key") < out.index("line 3: ")


def test_a_line_that_nobody_is_owed_is_faulty(event_type: EventType, tmp_path: Path) -> None:
    path = written(tmp_path, [line(1)])
    code, out = imported(path)
    assert (code, "line 1: no subscription matches that is not INACTIVE." in out) == (1, True)
    imported(path, "--skip-faulty")
    factories.subscription(event_type=event_type)
    assert imported(path)[0] == 0
    assert bodies() == [1]


def test_lines_that_are_not_json_or_too_long_are_reported_by_number(
    subscription: Subscription, tmp_path: Path
) -> None:
    path = tmp_path / "backlog.jsonl"
    path.write_bytes(
        b'{"key": \n\n[1]\n"' + b"x" * 3_000_000 + b'"\n' + json.dumps(line(1)).encode()
    )
    _, out = imported(path)
    assert (
        "line 1: this is not JSON: Expecting value (column 8). Write one JSON object a line." in out
    )
    assert "line 3: write a JSON object" in out
    assert "line 4: it is longer than" in out
    assert "3 of 4 lines cannot be imported" in out


def test_a_csv_row_is_named_by_its_first_line(subscription: Subscription, tmp_path: Path) -> None:
    path = tmp_path / "backlog.csv"
    path.write_text(
        'key,event,body\n1,Orders.Created,"{\n}"\n2,No.Such,{}\n3,Orders.Created,{},more\n'
    )
    _, out = imported(path)
    assert "line 4: event: there is no event type" in out
    assert "line 5: it has more cells than the header row" in out


def test_a_missing_file_is_refused_with_its_name(db: None) -> None:
    assert run("backlog", "/no/such") == (1, "/no/such cannot be read: No such file or directory.")


def test_a_named_shadow_subscription_records_its_messages_and_is_never_sent_them(
    event_type: EventType, tmp_path: Path
) -> None:
    shadow = factories.subscription(
        "orders",
        subscriber=factories.subscriber("crm"),
        event_type=event_type,
        status=SubscriptionStatus.SHADOW,
    )
    imported(written(tmp_path, [line(1, subscriptions=["crm/orders"])]))
    assert [row.status for row in Delivery.objects.filter(subscription=shadow)] == [Status.SHADOW]
