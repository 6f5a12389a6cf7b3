"""A delivery's page: its time line, requests, answers and waits, and the right to see them."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from delivery.console.messages import next_try
from delivery.console.messages.page import trace_of
from delivery.console.messages.shown_deliveries import with_attempts
from delivery.console.messages.trace_rows import read_trace_rows
from delivery.models import Delivery, Lane, LaneKind, LaneState, UrlHealth, UrlState
from delivery.states import OutcomeClass, Status
from tests.support import factories
from tests.unit.delivery.console.blocking import block
from tests.unit.delivery.console.refreshing import refresh

pytestmark = pytest.mark.django_db

DELIVERY = "/admin/delivery/delivery"


def page(ann: Client, row: Delivery) -> str:
    return ann.get(f"{DELIVERY}/{row.pk}/change/").text


def next_of(row: Delivery) -> Any:
    around = ("subscription__subscriber", "subscription__policy", "lane__subscriber")
    fresh = Delivery.objects.select_related(*around).get(pk=row.pk)
    return next_try.next_tries([fresh])[row.pk]


class TestTimeLine:
    def test_lists_publication_attempts_and_settlement(self) -> None:
        row = factories.delivery(Status.REJECTED, attempts=2)
        at = row.message.published_at
        factories.attempt(
            row,
            number=1,
            outcome=OutcomeClass.TIMEOUT,
            status_code=None,
            started_at=at + timedelta(seconds=2),
        )
        factories.attempt(row, number=2, started_at=at + timedelta(minutes=3))
        row.settled_at = at + timedelta(minutes=3, seconds=5)
        (shown,) = with_attempts([row], limit=10)
        found = trace_of(row.message, [shown], read_trace_rows(row.message, [row], now=at))
        assert [(event.name, event.words, event.after(at)) for event in found.events] == [
            ("published", f"by {row.message.publisher}", ""),
            ("TIMEOUT", "attempt 1", "+2.0 s"),
            ("CLIENT_ERROR", "attempt 2, 404", "+3 min"),
            ("REJECTED", "settled", "+3 min 5 s"),
        ]

    def test_of_a_long_tried_delivery_counts_the_hidden_attempts(self, ann: Client) -> None:
        row = factories.delivery(attempts=12)
        for number in range(1, 13):
            factories.attempt(row, number=number)
        shown = ann.get(f"/admin/delivery/message/{row.message_id}/change/").text
        assert "2 earlier attempts" in shown


class TestRequestAndResponse:
    def test_are_shown_side_by_side_without_secrets(self, ann: Client) -> None:
        subscription = factories.subscription(
            headers={"X-Own": "s3cret"},
            auth={"type": "bearer", "token": "t0ken"},
            endpoint="PUT:https://a.example/x",
        )
        row = factories.delivery(Status.REJECTED, subscription=subscription, attempts=1)
        attempt = factories.attempt(row, excerpt=b"no such thing")
        shown = page(ann, row)
        for said in (
            "PUT https://a.example/x",
            f"webhook-id: {row.message.public_id}",
            f"webhook-timestamp: {int(attempt.started_at.timestamp())}",
            "webhook-signature: v1,$SIGNATURE",
            "X-Own: $X_OWN",
            "Authorization: Bearer $KEY",
            "Response 404",
            "no such thing",
        ):
            assert said in shown, said
        assert "s3cret" not in shown
        assert "t0ken" not in shown

    def test_of_an_unanswered_attempt_says_so(self, ann: Client) -> None:
        row = factories.delivery(Status.FAILED, attempts=1)
        factories.attempt(
            row, outcome=OutcomeClass.UNREACHABLE, status_code=None, error="connection refused"
        )
        assert "No response: connection refused." in page(ann, row)

    def test_without_the_right_to_see_payloads_are_hidden(self, client: Client) -> None:
        user = User.objects.create_user("paula", is_staff=True)
        user.user_permissions.set(
            Permission.objects.filter(codename__in=["view_message", "view_delivery"])
        )
        client.force_login(user)
        message = factories.message(b"of-the-body", headers={"x-trace": "of-the-header"})
        row = factories.delivery(Status.REJECTED, message=message, attempts=1)
        factories.attempt(row, excerpt=b"of-the-answer")
        for address in (
            f"{DELIVERY}/{row.pk}/change/",
            f"/admin/delivery/message/{message.pk}/change/",
            f"{DELIVERY}/?open={row.pk}",
            f"/admin/delivery/message/?open={message.pk}",
        ):
            shown = client.get(address).text
            assert "of-the-" not in shown, address
            assert "You may not see payloads." in shown, address
            assert "Copy as curl" not in shown


class TestDoubt:
    def test_a_held_delivery_is_not_shown_as_resent(self, ann: Client) -> None:
        row = factories.delivery(Status.IN_DOUBT, redelivery="in-doubt")
        shown = page(ann, row)
        assert "Not sent again since" in shown
        assert "Sent again" not in shown

    def test_a_delivery_decided_by_a_person_is_not_shown_as_resent(self, ann: Client) -> None:
        row = factories.delivery(Status.CANCELLED, redelivery="in-doubt", attempts=1)
        factories.attempt(row, outcome=OutcomeClass.LOST, status_code=None)
        assert "Not sent again since" in page(ann, row)

    @pytest.mark.parametrize("status", [Status.PENDING, Status.DELIVERED])
    def test_a_resent_delivery_is_shown_as_resent(self, ann: Client, status: Status) -> None:
        row = factories.delivery(status, redelivery="in-doubt", attempts=2)
        factories.attempt(row, number=1, outcome=OutcomeClass.LOST, status_code=None)
        factories.attempt(row, number=2)
        assert "Sent again: a sender died after sending it" in page(ann, row)


class TestNextTry:
    def test_a_delivery_waiting_for_its_turn_says_so_only_on_its_page(self, ann: Client) -> None:
        row = factories.delivery()
        assert "next in its lane" in page(ann, row)
        assert "as soon as" not in ann.get(f"{DELIVERY}/").text

    def test_of_a_delivery_in_the_retry_lane_is_its_due_time(self) -> None:
        at = timezone.now() + timedelta(minutes=5)
        lane = Lane.objects.get(kind=LaneKind.RETRY, number=0)
        assert next_of(factories.delivery(lane=lane, next_attempt_at=at)).at == at

    def test_of_a_held_delivery_names_the_inactive_subscription(self, ann: Client) -> None:
        row = factories.delivery(subscription=factories.subscription(status="INACTIVE"))
        assert f"held: {row.subscription} is INACTIVE" in page(ann, row)

    def test_of_a_blocked_head_and_of_deliveries_behind_it(self) -> None:
        head = factories.delivery()
        behind = factories.delivery(subscription=head.subscription, message=head.message)
        block(head)
        assert next_of(head).words.startswith("blocks lane")
        assert next_of(behind).words.startswith(f"waits behind delivery {head.pk}")
        assert (
            next_of(head).at == next_of(behind).at == Lane.objects.get(deliveries=head).next_try_at
        )

    def test_a_suspended_lane_that_waits_for_a_person(self) -> None:
        row = factories.delivery()
        Lane.objects.filter(deliveries=row).update(state=LaneState.SUSPENDED, delivery_id=row.pk)
        found = next_of(row)
        assert ("resume the lane" in found.words, found.at) == (True, None)

    def test_of_a_stopped_url_is_never_in_the_past(self, ann: Client) -> None:
        policy = factories.policy(breaks_circuit=True)
        subscription = factories.subscription(
            endpoint="PATCH:https://down.example/hook", policy=policy
        )
        past, at = timezone.now() - timedelta(hours=1), timezone.now() + timedelta(minutes=9)
        row = factories.delivery(subscription=subscription, next_attempt_at=past)
        health = UrlHealth.objects.create(
            url="https://down.example/hook", state=UrlState.DISABLED, next_probe_at=at
        )
        assert next_of(row).at == at
        assert "its URL, which is DISABLED" in page(ann, row)
        assert "its URL, which is DISABLED" in ann.get(f"{DELIVERY}/").text
        health.state, health.next_probe_at = UrlState.FROZEN, None
        health.save()
        assert (next_of(row).at, "release the URL" in next_of(row).words) == (None, True)
        health.state = UrlState.ENABLED
        health.save()
        assert next_of(row).at == past

    def test_costs_one_query_more_however_many_urls_are_watched(
        self, ann: Client, django_assert_num_queries: DjangoAssertNumQueries
    ) -> None:
        policy = factories.policy(breaks_circuit=True)
        for _ in range(5):
            factories.delivery(subscription=factories.subscription(policy=policy))
        # Session, user, suggestions of three filters, saved views, the page, the states of
        # endpoints.
        with django_assert_num_queries(8):
            ann.get(f"{DELIVERY}/")


class TestPane:
    def test_an_address_opens_the_same_row_beside_the_list(self, ann: Client) -> None:
        row = factories.delivery(Status.REJECTED)
        shown = ann.get(f"{DELIVERY}/?status=REJECTED&open={row.pk}").text
        assert f'data-opened="{row.pk}"' in shown
        assert f"{DELIVERY}/{row.pk}/resubmit/" in shown
        assert "status=REJECTED" in shown
        message = ann.get(f"/admin/delivery/message/?open=msg_{row.message_id}").text
        assert f'data-opened="{row.message_id}"' in message

    def test_the_pane_is_the_page_without_its_frame(self, ann: Client) -> None:
        row = factories.delivery(Status.REJECTED)
        answer = refresh(ann, f"{DELIVERY}/{row.pk}/change/", "pane")
        assert f"{DELIVERY}/{row.pk}/resubmit/" in answer.text
        assert "<html" not in answer.text
        assert f'data-opened="{row.pk}"' in answer.text

    def test_other_pages_of_the_list_begin_without_it(
        self, ann: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("delivery.console.shared.keyset.KeysetAdmin.list_per_page", 1)
        rows = [factories.message() for _ in range(2)]
        answer = ann.get(f"/admin/delivery/message/?open={rows[0].pk}")
        assert "open=" not in answer.context["cl"].paginator.older_url

    @pytest.mark.parametrize("opened", ["999999", "x", "", "-1"])
    def test_a_missing_row_opens_nothing(self, ann: Client, opened: str) -> None:
        answer = ann.get(f"{DELIVERY}/?open={opened}")
        assert (answer.status_code, "data-opened" in answer.text) == (200, False)

    def test_a_person_who_may_not_see_deliveries_opens_none(self, client: Client) -> None:
        client.force_login(User.objects.create_user("eve", is_staff=True))
        address = f"{DELIVERY}/{factories.delivery().pk}/change/"
        assert client.get(address).status_code == 403
        assert refresh(client, address, "pane").headers["HX-Refresh"] == "true"
