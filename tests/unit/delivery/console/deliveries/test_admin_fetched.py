"""Deliveries of mailboxes in the console: their state, receive counts and possible actions."""

from datetime import timedelta

import pytest
from django.test import Client

from delivery.states import OutcomeClass, Status
from subscriptions.models import Subscription, SubscriptionStatus
from tests.support import factories
from tests.unit.delivery.console.fetching import SOON, fetched, released


@pytest.mark.parametrize(
    ("ends_in", "said", "of_the_fetch"),
    [
        (SOON, "unless acknowledged", "Fetch 3 has not ended."),
        (
            -SOON,
            "its visibility ended",
            "Fetch 3 has not ended: it ends with an acknowledgement, or with the next fetch.",
        ),
    ],
    ids=["out", "lapsed"],
)
def test_shows_its_holder(
    ann: Client, pulled: Subscription, ends_in: timedelta, said: str, of_the_fetch: str
) -> None:
    page = ann.get(
        f"/admin/delivery/delivery/{fetched(pulled, ends_in=ends_in, count=3).pk}/change/"
    ).text
    assert said in page
    assert of_the_fetch in page
    assert "3 of at most 5 times" in page
    assert "in the mailbox" not in page
    assert "No recorded fetches" not in page
    assert "<dt>Lane</dt>" not in page
    assert "<dt>Endpoint</dt>" not in page


def test_out_too_long_can_be_fetched_when_its_subscription_is_active(
    ann: Client, pulled: Subscription
) -> None:
    out = fetched(pulled, ends_in=-SOON)
    address = f"/admin/delivery/delivery/{out.pk}/change/"
    assert (
        "the next fetch gets it, and until then a late acknowledgement counts"
        in ann.get(address).text
    )
    Subscription.objects.update(status=SubscriptionStatus.INACTIVE)
    assert f"the next fetch, once {pulled} is ACTIVE, gets it" in ann.get(address).text


@pytest.mark.parametrize(
    ("receives", "before", "said"),
    [
        (0, 0, "never"),
        (1, 1, "not since the resubmission, once before"),
        (5, 3, "2 of at most 5 times since the resubmission, 3 times before"),
    ],
)
def test_shows_its_receive_count(
    ann: Client, pulled: Subscription, receives: int, before: int, said: str
) -> None:
    Subscription.objects.filter(pk=pulled.pk).update(max_receives=None if receives < 2 else 5)
    row = factories.delivery(
        subscription=pulled, receive_count=receives, attempts=receives, attempts_before=before
    )
    page = ann.get(f"/admin/delivery/delivery/{row.pk}/change/").text
    assert f"<dt>Fetched</dt><dd>{said}</dd>" in page


def test_shows_its_reason_with_its_fetch_and_in_the_trace(
    ann: Client, pulled: Subscription
) -> None:
    row = factories.delivery(
        Status.REJECTED,
        subscription=pulled,
        attempts=1,
        receive_count=1,
        reason="rejected, as it says",
    )
    factories.attempt(row, outcome=OutcomeClass.DECLINED, status_code=None, error=row.reason)
    address = f"/admin/delivery/delivery/{row.pk}/"
    assert ann.get(f"{address}change/").text.count("rejected, as it says") == 2
    page = ann.post(f"{address}resubmit/", {"next": f"{address}change/"}, follow=True).text
    assert "resubmitted by ann" in page
    assert "a person sent it again" not in page


def test_shows_when_it_is_available_again(ann: Client, pulled: Subscription) -> None:
    page = ann.get(f"/admin/delivery/delivery/{released(pulled).pk}/change/").text
    assert "can be fetched" in page


def test_lists_its_fetches_without_a_status_code(ann: Client, pulled: Subscription) -> None:
    delivery = factories.delivery(
        Status.REJECTED, subscription=pulled, attempts=1, receive_count=1, reason="rejected"
    )
    factories.attempt(delivery, outcome=OutcomeClass.DECLINED, status_code=None)
    page = ann.get(f"/admin/delivery/delivery/{delivery.pk}/change/").text
    assert "DECLINED" in page
    assert "Held for" in page
    assert ">Code<" not in page


def test_can_be_resubmitted_and_cancelled(ann: Client, pulled: Subscription) -> None:
    failed = factories.delivery(Status.FAILED, subscription=pulled, receive_count=5)
    page = ann.post(f"/admin/delivery/delivery/{failed.pk}/resubmit/", follow=True).text
    assert "can be fetched again, at its original position in the mailbox" in page
    out = fetched(pulled)
    ann.post(f"/admin/delivery/delivery/{out.pk}/cancel/")
    out.refresh_from_db()
    assert (out.status, out.lease_token) == (Status.CANCELLED, None)


def test_is_found_by_its_status(ann: Client, pulled: Subscription) -> None:
    out = fetched(pulled)
    factories.delivery(subscription=pulled)
    page = ann.get("/admin/delivery/delivery/?status=IN_FLIGHT")
    assert [row.pk for row in page.context["cl"].result_list] == [out.pk]
    assert f">{out.lease_expires_at:%H:%M:%S} UTC</time>" in page.text
    assert "in the mailbox" not in page.text


@pytest.mark.parametrize(
    ("status", "is_offered"),
    [("", True), ("REJECTED", True), ("IN_FLIGHT", False), ("DELIVERED", False)],
)
def test_to_resubmit_all_is_offered_only_where_some_can_be(
    ann: Client, pulled: Subscription, status: str, is_offered: bool
) -> None:
    fetched(pulled)
    page = ann.get(f"/admin/delivery/delivery/?status={status}").text
    assert ("Resubmit all" in page) == is_offered
