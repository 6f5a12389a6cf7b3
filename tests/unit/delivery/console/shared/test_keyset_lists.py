"""The lists: with pinned query counts, paged by id, filtered by the URL."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from delivery.console.shared.keyset import KeysetAdmin
from delivery.models import JournalEntry, Resubmission, UrlHealth
from delivery.states import Status
from subscriptions.models import ConfigurationChange
from tests.support import factories
from tests.unit.delivery.console.blocking import block
from tests.unit.delivery.support.replays.ready_replay import finish, made, running

# Session and user are two of each.
QUERIES = {
    "subscriptions/subscriber": 11,
    "subscriptions/subscription": 13,
    "subscriptions/eventtype": 7,
    "subscriptions/publisher": 7,
    "subscriptions/apikey": 6,
    "subscriptions/policy": 5,
    "subscriptions/configurationchange": 4,
    "delivery/message": 9,
    "delivery/delivery": 7,
    "delivery/resubmission": 4,
    "delivery/lane": 10,
    "delivery/urlhealth": 7,
    "delivery/journalentry": 5,
    "auth/user": 8,
    "auth/group": 7,
}


def make_rows() -> None:
    factories.api_key()
    factories.publisher(all_event_types=False).event_types.add(factories.event_type())
    factories.policy()
    delivery = factories.delivery(Status.REJECTED)
    factories.delivery(message=delivery.message, subscription=factories.subscription())
    UrlHealth.objects.create(url=factories.unique("https://receiver.example/"))
    JournalEntry.objects.create(
        kind="UNMATCHED", text="msg_1 matched no subscription.", message_id=delivery.message_id
    )
    ConfigurationChange.objects.create(
        actor="ann",
        action="changed",
        object_type="policy",
        object_name="x",
        before={"a": 1},
        after={"a": 2},
    )
    Resubmission.objects.create(filter={"status": ["FAILED"]}, actor="ann", count=1)


@pytest.mark.parametrize("address", QUERIES)
def test_costs_the_same_number_of_queries_however_many_rows(
    ann: Client, django_assert_num_queries: DjangoAssertNumQueries, address: str
) -> None:
    for _ in range(5):
        make_rows()
    with django_assert_num_queries(QUERIES[address]):
        answer = ann.get(f"/admin/{address}/")
    assert answer.status_code == 200


def test_no_description_makes_a_row_higher_than_two_lines(ann: Client) -> None:
    text = "Purpose, at some length. " * 20
    factories.event_type(description=text)
    factories.subscriber(description=text)
    for address in ("eventtype", "subscriber"):
        page = ann.get(f"/admin/subscriptions/{address}/").text
        assert f'<span class="inturn-reason-cell" title="{text}">' in page


def test_a_choice_is_shown_by_its_word_and_explained_where_it_is_made(ann: Client) -> None:
    event_type, subscriber = factories.event_type(), factories.subscriber()
    for row, address, word, meaning in (
        (event_type, "eventtype", "TOPIC", "to every matching subscription"),
        (event_type, "eventtype", "GUARANTEED", "on disk before the answer"),
        (subscriber, "subscriber", "SERIAL", "one at a time, in order"),
    ):
        page = ann.get(f"/admin/subscriptions/{address}/").text
        cells = page.partition('id="result_list"')[2].partition("</table>")[0]
        assert word in cells
        assert meaning not in cells
        assert meaning in ann.get(f"/admin/subscriptions/{address}/{row.pk}/change/").text


@pytest.mark.parametrize(
    "address", ["delivery/message", "delivery/delivery", "delivery/journalentry"]
)
def test_growing_tables_are_never_counted(ann: Client, address: str) -> None:
    make_rows()
    with CaptureQueriesContext(
        connection,
    ) as queries:
        ann.get(f"/admin/{address}/")
    page = [
        query["sql"]
        for query in queries
        if "ORDER BY" in query["sql"] and "LIMIT 26" in query["sql"]
    ]
    assert len(page) == 1
    assert not [query["sql"] for query in queries if 'COUNT(*) AS "__count"' in query["sql"]]


def ids(answer: Any) -> list[int]:
    return [row.pk for row in answer.context["cl"].result_list]


class TestPagesByKey:
    @pytest.fixture(autouse=True)
    def _three_a_page(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(KeysetAdmin, "list_per_page", 3)

    def test_lead_from_the_newest_to_the_oldest_and_back(self, ann: Client) -> None:
        made = [factories.message().pk for _ in range(7)][::-1]
        first = ann.get("/admin/delivery/message/")
        assert ids(first) == made[:3]
        assert first.context["cl"].paginator.newer_url is None
        second = ann.get("/admin/delivery/message/" + first.context["cl"].paginator.older_url)
        assert ids(second) == made[3:6]
        third = ann.get("/admin/delivery/message/" + second.context["cl"].paginator.older_url)
        assert ids(third) == made[6:]
        assert third.context["cl"].paginator.older_url is None
        back = ann.get("/admin/delivery/message/" + third.context["cl"].paginator.newer_url)
        assert ids(back) == made[3:6]

    def test_are_not_shifted_by_new_rows(self, ann: Client) -> None:
        made = [factories.message().pk for _ in range(5)][::-1]
        older = ann.get("/admin/delivery/message/").context["cl"].paginator.older_url
        factories.message()
        assert ids(ann.get(f"/admin/delivery/message/{older}")) == made[3:]

    def test_keep_their_filters(self, ann: Client) -> None:
        event_type = factories.event_type("Wanted")
        wanted = [factories.message(event_type=event_type).pk for _ in range(4)]
        factories.message()
        first = ann.get("/admin/delivery/message/?event_type=Wanted")
        assert ids(first) == wanted[:0:-1]
        older = first.context["cl"].paginator.older_url
        assert ids(ann.get(f"/admin/delivery/message/{older}")) == wanted[:1]

    @pytest.mark.parametrize("wrong", ["x", "-1", "9" * 30, ""])
    def test_a_wrong_place_is_the_first_page(self, ann: Client, wrong: str) -> None:
        message = factories.message()
        assert ids(ann.get(f"/admin/delivery/message/?before={wrong}")) == [message.pk]


class TestFilters:
    def test_a_message_is_found_by_its_public_id(self, ann: Client) -> None:
        message, _ = factories.message(), factories.message()
        assert ids(ann.get(f"/admin/delivery/message/?q={message.public_id}")) == [message.pk]
        assert ids(ann.get("/admin/delivery/message/?q=nonsense")) == []

    def test_messages_by_publisher_and_time(self, ann: Client) -> None:
        message, _ = factories.message(publisher=factories.publisher("forge")), factories.message()
        at = message.published_at
        assert ids(ann.get("/admin/delivery/message/?publisher=forge")) == [message.pk]
        assert ids(ann.get(f"/admin/delivery/message/?until={at:%Y-%m-%dT%H:%M:%S}")) == []
        assert len(ids(ann.get(f"/admin/delivery/message/?since={at:%Y-%m-%dT%H:%M:%S}"))) == 2

    def test_deliveries_by_when_their_messages_were_published_whenever_a_replay_made_them(
        self, ann: Client
    ) -> None:
        now = timezone.now()
        early, late = (
            factories.message(
                published_at=now - timedelta(hours=hours), event_type=factories.event_type()
            )
            for hours in (9, 1)
        )
        rows = [factories.delivery(message=message) for message in (early, late)]
        time = {"since": now - timedelta(days=1), "until": now}
        replay = running(rows[0].subscription, [early.pk, late.pk], **time)
        finish(replay)
        again = made(replay)
        moment = f"{now - timedelta(hours=5):%Y-%m-%dT%H:%M:%S}"
        path = "/admin/delivery/delivery/"
        assert ids(ann.get(f"{path}?until={moment}")) == [again[0].pk, rows[0].pk]
        assert ids(ann.get(f"{path}?since={moment}")) == [again[1].pk, rows[1].pk]
        assert len(ids(ann.get(f"{path}?since={now - timedelta(hours=20):%Y-%m-%dT%H:%M:%S}"))) == 4

    def test_support_filters_deliveries_by_every_field(self, ann: Client) -> None:
        wanted, other = factories.delivery(Status.REJECTED), factories.delivery()
        subscription = wanted.subscription
        for query in (
            "status=REJECTED",
            f"subscriber={subscription.subscriber.name}",
            f"subscription={subscription.pk}",
            f"subscription={subscription.name}",
            f"message={wanted.message.public_id}",
            f"q={wanted.pk}",
            f"q={wanted.message.public_id}",
        ):
            assert ids(ann.get(f"/admin/delivery/delivery/?{query}")) == [wanted.pk], query
        assert ids(ann.get("/admin/delivery/delivery/?status=nonsense")) == [other.pk, wanted.pk]

    def test_lanes_by_state_with_the_stopped_first(self, ann: Client) -> None:
        idle, blocked = factories.delivery(), factories.delivery()
        block(blocked)
        first, *others = ids(ann.get("/admin/delivery/lane/"))
        assert first == blocked.lane_id
        assert idle.lane_id in others
        assert ids(ann.get("/admin/delivery/lane/?state=BLOCKED")) == [blocked.lane_id]

    def test_the_changes_of_one_object_are_listed(self, ann: Client) -> None:
        policy = factories.policy("mine")
        ConfigurationChange.objects.create(
            actor="a", action="created", object_type="policy", object_name="mine"
        )
        ConfigurationChange.objects.create(
            actor="a", action="created", object_type="policy", object_name="other"
        )
        answer = ann.get(f"/admin/subscriptions/policy/{policy.pk}/history/", follow=True)
        assert [row.object_name for row in answer.context["cl"].result_list] == ["mine"]


def test_read_only_models_have_no_change_form(ann: Client) -> None:
    make_rows()
    for address in (
        "delivery/message",
        "delivery/delivery",
        "delivery/lane",
        "delivery/journalentry",
    ):
        assert ann.get(f"/admin/{address}/add/").status_code == 403


def test_a_held_delivery_is_shown_as_held(ann: Client) -> None:
    factories.delivery(subscription=factories.subscription(status="INACTIVE"))
    assert ">held<" in ann.get("/admin/delivery/delivery/").text


@pytest.mark.django_db
def test_a_list_with_rows_leads_to_the_form_of_a_new_one(ann: Client) -> None:
    lists = ("subscriptions/subscription", "subscriptions/policy", "auth/user")
    factories.subscription()
    for name in lists:
        page = ann.get(f"/admin/{name}/").text
        assert f'href="/admin/{name}/add/">New {name.rpartition("/")[2]}</a>' in page, name
    assert ">New role</a>" in ann.get("/admin/auth/group/").text
    assert ">New " not in ann.get("/admin/delivery/lane/").text


@pytest.mark.django_db
def test_a_select_of_rows_offers_a_new_one_to_people_who_may_add_it(ann: Client) -> None:
    address = "/admin/subscriptions/subscription/add/"
    offered = ("New subscriber</a>", "New event type</a>", "New policy</a>")
    page = ann.get(address).text
    assert all(text in page for text in offered)
    person = User.objects.create_user("eve", is_staff=True)
    person.user_permissions.set(Permission.objects.filter(codename="add_subscription"))
    eve = Client()
    eve.force_login(person)
    page = eve.get(address).text
    assert not any(text in page for text in offered)


@pytest.mark.django_db
def test_a_row_of_an_active_subscription_is_held_or_made_inactive(ann: Client) -> None:
    subscription = factories.subscription()
    row = ann.get("/admin/subscriptions/subscription/").text.partition("<tbody")[2]
    address = f"/admin/subscriptions/subscription/{subscription.pk}"
    assert re.findall('formaction="(.*?)"', row) == [f"{address}/hold/", f"{address}/deactivate/"]


@pytest.mark.django_db
def test_many_values_of_a_change_are_folded(ann: Client) -> None:
    ConfigurationChange.objects.create(
        actor="ann",
        action="created",
        object_type="policy",
        object_name="x",
        after={f"field_{number}": number for number in range(7)},
    )
    page = ann.get("/admin/subscriptions/configurationchange/").text
    assert "7 values</summary>" in page
