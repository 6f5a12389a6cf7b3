"""Replays in the console: requested for a subscription, reviewed, started, cancelled."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from delivery.models import PipelineRun, Replay, ReplayState, Step
from subscriptions.models import Kind, Subscription
from tests.support import factories
from tests.unit.delivery.console import history_rows
from tests.unit.delivery.console.refreshing import refresh

PAGE = "/admin/delivery/replay/"

pytestmark = pytest.mark.django_db


@pytest.fixture
def orders() -> Subscription:
    history_rows.archived()
    return factories.subscription("orders", filter="$$->'Body'->>'id' = '1'")


def form(subscription: Subscription, **fields: str) -> dict[str, str]:
    since = timezone.now() - timedelta(days=2)
    own = {"event_types": subscription.event_type.name, "filter": subscription.filter}
    return (
        {"since": f"{since:%Y-%m-%dT%H:%M:%S}", "until": "", "header_filter_string": "", "rate": ""}
        | own
        | fields
    )


def ask(client: Client, subscription: Subscription, **fields: str) -> str:
    address = f"{PAGE}add/?subscription={subscription.pk}"
    return client.post(address, form(subscription, **fields), follow=True).text


def page_of(replay: Replay) -> str:
    return f"{PAGE}{replay.pk}/change/"


def test_the_form_starts_with_the_subscriptions_values(ann: Client, orders: Subscription) -> None:
    sync = factories.subscription("sync", event_type=factories.event_type(kind=Kind.SYNC))
    first = ann.get(f"{PAGE}add/").text
    assert str(orders) in first
    assert str(sync) not in first
    page = ann.get(f"{PAGE}add/", {"subscription": orders.pk}).text
    assert orders.event_type.name in page
    assert "id&#x27; = &#x27;1&#x27;" in page


def test_before_anything_is_archived_it_offers_the_export(ann: Client) -> None:
    page = ann.get(f"{PAGE}add/").text
    assert "Nothing is archived yet" in page
    assert "/admin/delivery/pipelinerun/request/export/" in page


def test_without_a_subscription_it_offers_a_new_one(ann: Client) -> None:
    history_rows.archived()
    factories.subscription(event_type=factories.event_type(kind=Kind.SYNC))
    page = ann.get(f"{PAGE}add/").text
    assert "No subscription to replay to" in page
    assert 'href="/admin/subscriptions/subscription/add/">New subscription</a>' in page


def test_a_request_starts_the_selection_and_sends_nothing(
    ann: Client, orders: Subscription
) -> None:
    page = ask(ann, orders, rate="5", filter="")
    replay = Replay.objects.get()
    assert (replay.state, replay.rate, replay.filter) == (ReplayState.SELECTING, 5.0, "")
    assert replay.asked_by == "ann"
    run = PipelineRun.objects.get()
    assert run.step == Step.REPLAY
    assert "Nothing is sent until you start it" in page
    assert f"/admin/delivery/pipelinerun/{run.pk}/change/" in page
    assert 'id="replay" hx-get=""' in page


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"filter": "$$->"}, "line 1"),
        ({"until": "2999-01-01T00:00"}, "run the export first"),
        ({"event_types": "No.Such.Event"}, "There is no event type"),
        ({"event_types": "  "}, "required"),
        ({"since": ""}, "required"),
        ({"rate": "0"}, "greater than or equal to"),
    ],
)
def test_errors_are_shown_at_their_field(
    ann: Client, orders: Subscription, fields: dict[str, str], said: str
) -> None:
    assert said in ask(ann, orders, **fields)
    assert not Replay.objects.exists()


@pytest.mark.parametrize("subscription", ["0", "x", "9" * 40])
def test_an_address_without_a_subscription_asks_for_one(
    ann: Client, orders: Subscription, subscription: str
) -> None:
    answer = ann.get(f"{PAGE}add/", {"subscription": subscription})
    assert answer.status_code == 200
    assert ">Subscription<" in answer.text


def test_a_ready_replay_shows_counts_by_event_type_and_day(ann: Client) -> None:
    replay = history_rows.replay(rate=2.0)
    page = ann.get(page_of(replay)).text
    assert "42 messages would be delivered" in page
    assert "this takes 21 s at 2.0 per second" in page
    for reported in ("2026-11-20", "2026-11-21", "Order.Created", "Order.Paid"):
        assert reported in page
    assert f"{PAGE}{replay.pk}/start/" in page
    assert 'id="replay" hx-get' not in page


def test_an_empty_selection_cannot_be_started(ann: Client) -> None:
    replay = history_rows.replay(count=0, preview=[])
    page = ann.get(page_of(replay)).text
    assert "No matches" in page
    assert f"{PAGE}{replay.pk}/start/" not in page
    assert f"{PAGE}{replay.pk}/cancel/" in page


def test_a_replay_is_started_once_and_cancelled(ann: Client) -> None:
    replay = history_rows.replay()
    assert "are being created" in ann.post(f"{PAGE}{replay.pk}/start/", follow=True).text
    assert (
        "Nothing was done: it is RUNNING" in ann.post(f"{PAGE}{replay.pk}/start/", follow=True).text
    )
    Replay.objects.filter(pk=replay.pk).update(done=21, made=20)
    part = refresh(ann, page_of(replay), "replay")
    assert "21 of 42 messages" in part.text
    assert "20 deliveries created; 1 not created" in part.text
    assert f"?replay={replay.pk}" in part.text
    assert (
        "Cancelled; the 20 deliveries" in ann.post(f"{PAGE}{replay.pk}/cancel/", follow=True).text
    )
    replay.refresh_from_db()
    assert replay.state == ReplayState.CANCELLED
    assert "hx-get" not in refresh(ann, page_of(replay), "replay").text


def test_a_failed_replay_can_be_selected_again(ann: Client) -> None:
    replay = history_rows.replay(ReplayState.FAILED, error="Spark ended.", count=0, preview=[])
    page = ann.get(page_of(replay)).text
    assert "Spark ended." in page
    assert f"{PAGE}{replay.pk}/again/" in page
    ann.post(f"{PAGE}{replay.pk}/again/")
    replay.refresh_from_db()
    assert replay.state == ReplayState.SELECTING


def test_a_replays_deliveries_are_listed(ann: Client) -> None:
    replay = history_rows.replay()
    of_it = factories.delivery(subscription=replay.subscription, replay=replay)
    other = factories.delivery()
    page = ann.get("/admin/delivery/delivery/", {"replay": replay.pk})
    assert [row.pk for row in page.context["cl"].result_list] == [of_it.pk]
    assert other.pk != of_it.pk


def test_readers_change_nothing(reader: Client) -> None:
    replay = history_rows.replay()
    page = reader.get(page_of(replay)).text
    assert "42 messages would be delivered" in page
    for verb in ("start", "cancel", "again"):
        assert f"{PAGE}{replay.pk}/{verb}/" not in page
        assert reader.post(f"{PAGE}{replay.pk}/{verb}/").status_code == 403
    assert reader.get(f"{PAGE}add/").status_code == 403
