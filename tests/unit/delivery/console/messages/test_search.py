"""Searching the list of messages by texts; an interrupted search can continue."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from delivery.console.messages import search as message_search
from delivery.console.shared.keyset import KeysetAdmin
from delivery.states import Status
from delivery.support import search as searching
from tests.support import factories
from tests.unit.delivery.console.shared.test_keyset_lists import ids

MESSAGES = "/admin/delivery/message/"


def progress(answer: Any) -> Any:
    return answer.context["cl"].progress


def test_a_text_search_covers_the_last_day_and_the_address_says_so(ann: Client) -> None:
    message = factories.message(b"a needle in it")
    answer = ann.get(f"{MESSAGES}?body=needle")
    assert answer.status_code == 302
    assert "body=needle&since=20" in answer.headers["Location"]
    found = ann.get(MESSAGES + answer.headers["Location"])
    assert ids(found) == [message.pk]
    assert "Published since" in found.text
    assert "last week" in found.text


@pytest.mark.parametrize("given", ["since=2026-01-01T00:00:00", "id_from=msg_1", "before=99999999"])
def test_a_search_with_since_is_not_redirected(ann: Client, given: str) -> None:
    message = factories.message(b"a needle in it")
    assert ids(ann.get(f"{MESSAGES}?body=needle&{given}")) == [message.pk]


@pytest.mark.parametrize("name", ["since", "until"])
def test_the_plus_of_an_offset_need_not_be_encoded(ann: Client, name: str) -> None:
    noon = datetime(2026, 5, 4, 12, tzinfo=UTC)
    before = factories.message(published_at=noon - timedelta(minutes=30))
    after = factories.message(published_at=noon + timedelta(minutes=30))
    found = ids(ann.get(f"{MESSAGES}?{name}=2026-05-04T14:00:00+02:00"))
    assert found == [after.pk if name == "since" else before.pk]


def test_all_filters_apply_together(ann: Client) -> None:
    row = factories.delivery(
        Status.REJECTED, message=factories.message(b"needle", headers={"a": "b"})
    )
    factories.message(b"needle", event_type=row.message.event_type)
    kind = row.message.event_type.name
    query = f"body=needle&header=A: B&status=REJECTED&event_type={kind}&since=2026-01-01T00:00:00"
    assert ids(ann.get(f"{MESSAGES}?{query}")) == [row.message_id]
    assert ids(ann.get(f"{MESSAGES}?{query}&id_from={row.message_id + 1}")) == []
    assert ids(ann.get(f"{MESSAGES}?{query}&id_to={row.message_id}")) == [row.message_id]
    assert ids(ann.get(f"{MESSAGES}?{query}&until=2026-01-02T00:00:00")) == []


def test_a_range_of_ids_is_found_and_an_invalid_id_finds_nothing(ann: Client) -> None:
    made = [factories.message().pk for _ in range(4)]
    assert ids(ann.get(f"{MESSAGES}?id_from=msg_{made[1]}&id_to={made[2]}")) == [made[2], made[1]]
    assert ids(ann.get(f"{MESSAGES}?id_from=x")) == []


def test_pages_lead_to_the_end_and_back_to_the_newest(
    ann: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(KeysetAdmin, "list_per_page", 2)
    made = [factories.message(b"needle").pk for _ in range(3)][::-1]
    first = ann.get(f"{MESSAGES}?body=needle&since=2026-01-01T00:00:00")
    assert ids(first) == made[:2]
    second = ann.get(MESSAGES + first.context["cl"].paginator.older_url)
    assert ids(second) == made[2:]
    assert second.context["cl"].paginator.older_url is None
    assert "All results shown" in second.text
    assert ids(ann.get(MESSAGES + second.context["cl"].paginator.newer_url)) == made[:2]


def test_an_interrupted_search_shows_its_progress_and_continues(
    ann: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    oldest, *_ = [factories.message(b"needle" if number == 0 else b"hay") for number in range(5)]
    monkeypatch.setattr(searching, "FIRST_PART", 2)
    # The function's default was bound when it was defined.
    monkeypatch.setattr(
        message_search,
        "walk_messages",
        lambda rows, search, **fields: searching.walk_messages(rows, search, **fields, seconds=0),
    )
    address = f"{MESSAGES}?body=needle&id_from={oldest.pk}"
    answer = ann.get(address)
    assert ids(answer) == []
    assert "0 found" in answer.text
    shares = [progress(answer).percent]
    while (older := answer.context["cl"].paginator.older_url) is not None:
        assert "Search further" in answer.text
        answer = ann.get(MESSAGES + older)
        shares.append(progress(answer).percent)
    assert ids(answer) == [oldest.pk]
    assert shares == sorted(set(shares))
    assert shares[-1] == 100
    assert progress(answer).reached is None


def test_a_search_costs_the_same_number_of_queries_however_many_are_found(
    ann: Client, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    made = [
        factories.delivery(Status.REJECTED, message=factories.message(b"needle")) for _ in range(6)
    ]
    # So few ids that one part has them all, whatever ran before.
    ids_of_them = f"id_from={made[0].message_id}&id_to={made[-1].message_id}"
    # Session, user, the first id of the filter, the newest id, the first id of the time, the
    # deliveries and the page in transactions with a limit of time (four more each), the counts,
    # suggestions of four filters, saved views.
    with django_assert_num_queries(22):
        answer = ann.get(
            f"{MESSAGES}?body=needle&status=REJECTED&since=2026-01-01T00:00:00&{ids_of_them}"
        )
    assert len(ids(answer)) == 6


def test_without_the_right_to_see_payloads_texts_are_not_searched(client: Client, db: None) -> None:
    user = User.objects.create_user("paula", is_staff=True)
    user.user_permissions.set(
        Permission.objects.filter(codename__in=["view_message", "view_delivery"])
    )
    client.force_login(user)
    factories.delivery(
        Status.REJECTED, message=factories.message(b"needle", headers={"a": "needle"})
    )
    for query in ("body=needle", "header=needle", "body=needle&status=REJECTED"):
        answer = client.get(f"{MESSAGES}?{query}&since=2026-01-01T00:00:00")
        assert ids(answer) == []
        assert "you cannot search in them" in answer.text
    assert len(ids(client.get(f"{MESSAGES}?status=REJECTED"))) == 1
    assert 'name="body"' not in client.get(MESSAGES).text


@pytest.mark.parametrize(
    "query", ["body=%00", "body=" + "x" * 5000, "status=nonsense", "since=x&header=y", "open=x"]
)
def test_nonsense_is_answered(ann: Client, query: str) -> None:
    factories.message()
    assert ann.get(f"{MESSAGES}?{query}", follow=True).status_code == 200
