"""The buttons of support: each a POST with its own right, each logged."""

import pytest
from django.test import Client
from django.urls import reverse

from delivery.models import Delivery, JournalEntry, JournalKind, Lane, Resubmission
from delivery.states import Status
from delivery.support import toggle
from subscriptions.models import ConfigurationChange, Installation, Subscription, SubscriptionStatus
from tests.support import factories
from tests.unit.delivery.console.blocking import block, suspend
from tests.unit.delivery.support.test_bulk_jobs_resubmissions import finish

SUBSCRIPTION = "/admin/subscriptions/subscription"
LANE = "/admin/delivery/lane"


@pytest.fixture
def head(db: None) -> Delivery:
    head = factories.delivery()
    block(head)
    return head


def messages_after(client: Client, address: str, **data: str) -> str:
    return client.post(address, data, follow=True).text


def test_made_inactive_and_undone_with_two_posts(ann: Client, head: Delivery) -> None:
    subscription = head.subscription
    page = messages_after(ann, f"{SUBSCRIPTION}/{subscription.pk}/deactivate/")
    subscription.refresh_from_db()
    assert subscription.status == "INACTIVE"
    undo = f"{SUBSCRIPTION}/{subscription.pk}/restore/INACTIVE/ACTIVE/"
    assert f'formaction="{undo}"' in page
    ann.post(undo)
    subscription.refresh_from_db()
    assert subscription.status == "ACTIVE"
    assert [change.actor for change in ConfigurationChange.objects.all()] == ["ann", "ann"]


def test_lists_count_waiting_messages_in_the_cost_of_deactivating(
    ann: Client, head: Delivery
) -> None:
    for name in ("subscription", "subscriber"):
        page = ann.get(f"/admin/subscriptions/{name}/").text
        assert "About 1 message an hour will not be kept." in page


def test_all_sending_is_not_released_at_a_rate_that_is_none(ann: Client) -> None:
    installation = Installation.objects.update_or_create(pk=1, defaults={"sending": "HELD"})[0]
    page = messages_after(ann, reverse("admin:sending_release"), catch_up_rate="fast")
    installation.refresh_from_db()
    assert installation.sending == "HELD"
    assert "Nothing was done. Enter a number." in page


@pytest.mark.parametrize("status", [SubscriptionStatus.HELD, SubscriptionStatus.INACTIVE])
def test_one_is_released_at_the_given_rate_and_not_at_a_wrong_one(
    ann: Client, head: Delivery, status: SubscriptionStatus
) -> None:
    subscription = head.subscription
    Subscription.objects.filter(pk=subscription.pk).update(status=status, catch_up_rate=None)
    place = f"{SUBSCRIPTION}/{subscription.pk}"
    assert 'name="catch_up_rate"' in ann.get(f"{place}/").text
    page = messages_after(ann, f"{place}/activate/deliver/", catch_up_rate="0")
    assert "Nothing was done." in page
    subscription.refresh_from_db()
    assert subscription.status == status
    # The fields of a hold may still be on the page.
    page = messages_after(
        ann, f"{place}/activate/deliver/", catch_up_rate="2.5", until="2001-01-01"
    )
    assert "is ACTIVE again" in page
    assert Lane.objects.get(subscriber=subscription.subscriber).catch_up_rate == 2.5


@pytest.mark.parametrize("name", ["subscription", "subscriber"])
def test_deactivating_chosen_rows_says_what_it_costs_of_all_together(
    ann: Client, head: Delivery, name: str
) -> None:
    other = factories.delivery(Status.PENDING).subscription
    quiet = factories.subscription()
    rows = [head.subscription, other, quiet]
    ids = [row.pk if name == "subscription" else row.subscriber_id for row in rows]
    chosen = {"action": "deactivate_chosen", "_selected_action": ids}
    page = ann.post(f"/admin/subscriptions/{name}/", chosen, follow=True).text
    assert "3 of 3 are INACTIVE now. About 2 messages an hour will not be kept." in page


def test_chosen_rows_are_held_and_undone_with_two_posts(ann: Client, head: Delivery) -> None:
    first, other = head.subscription, factories.subscription(status=SubscriptionStatus.INACTIVE)
    chosen = {"action": "hold_chosen", "_selected_action": [first.pk, other.pk]}
    page = ann.post(f"{SUBSCRIPTION}/", chosen, follow=True).text
    before = f"{first.pk}-ACTIVE {other.pk}-INACTIVE"
    assert "2 of 2 are HELD now." in page
    assert f'name="before" value="{before}">Undo' in page
    toggle.activate_owner(other, actor="bob")
    undone = messages_after(ann, f"{SUBSCRIPTION}/restore/HELD/", before=before)
    assert "1 of 2 have their earlier status again. Not HELD any more" in undone
    first.refresh_from_db()
    other.refresh_from_db()
    assert (first.status, other.status) == ("ACTIVE", "ACTIVE")
    assert ann.post(f"{SUBSCRIPTION}/restore/HELD/", {"before": "1-GONE"}).status_code == 400


def test_made_shadow_and_undone_with_two_posts(ann: Client, head: Delivery) -> None:
    subscription = head.subscription
    assert (
        f"{SUBSCRIPTION}/{subscription.pk}/shadow/"
        in ann.get(f"{SUBSCRIPTION}/{subscription.pk}/").text
    )
    page = messages_after(ann, f"{SUBSCRIPTION}/{subscription.pk}/shadow/")
    subscription.refresh_from_db()
    assert subscription.status == "SHADOW"
    undo = f"{SUBSCRIPTION}/{subscription.pk}/restore/SHADOW/ACTIVE/"
    assert f'formaction="{undo}"' in page
    shown = ann.get(f"{SUBSCRIPTION}/{subscription.pk}/").text
    assert "SHADOW deliveries" in shown
    assert "1 SHADOW subscription</a> records matches" in ann.get("/admin/").text
    assert ">held<" in ann.get(f"/admin/delivery/message/{head.message_id}/change/").text.replace(
        "\n", ""
    )
    assert subscription.name in ann.get(f"{SUBSCRIPTION}/?status=SHADOW").text
    ann.post(undo)
    subscription.refresh_from_db()
    assert subscription.status == "ACTIVE"
    ann.post(
        f"{SUBSCRIPTION}/", {"action": "shadow_chosen", "_selected_action": [str(subscription.pk)]}
    )
    subscription.refresh_from_db()
    assert subscription.status == "SHADOW"


@pytest.mark.parametrize("address", ["/admin/", f"{SUBSCRIPTION}/", f"{SUBSCRIPTION}/{{pk}}/"])
def test_the_button_warns_that_messages_published_meanwhile_are_not_kept(
    ann: Client, head: Delivery, address: str
) -> None:
    page = ann.get(address.format(pk=head.subscription_id)).text
    assert "Deactivate" in page
    assert "will not be kept" in page


def test_page_and_journal_say_afterwards_that_messages_are_not_kept(
    ann: Client, head: Delivery
) -> None:
    page = messages_after(ann, f"{SUBSCRIPTION}/{head.subscription_id}/deactivate/")
    assert "messages published from now on are not kept for it" in page
    assert (
        "messages published meanwhile are not kept for it"
        in ann.get("/admin/delivery/journalentry/").text
    )


def test_the_api_warns_that_messages_published_meanwhile_are_not_kept(client: Client) -> None:
    description = client.get("/api/schema/?format=json").json()
    change = description["paths"]["/api/v1/subscriptions/{id}"]["patch"]["description"]
    assert "published while a subscription is INACTIVE are not kept for it" in " ".join(
        change.split()
    )


def test_made_active_without_the_backlog(ann: Client, head: Delivery) -> None:
    address = f"{SUBSCRIPTION}/{head.subscription_id}"
    ann.post(f"{address}/deactivate/")
    page = messages_after(ann, f"{address}/activate/cancel/")
    job = Resubmission.objects.get()
    assert (
        "CANCELLED from now on: 1 held delivery "
        f'(<a href="/admin/delivery/resubmission/{job.pk}/change/">' in page
    )
    assert "Its held deliveries are being cancelled" in ann.get(f"{address}/").text
    assert "Stop" not in ann.get(f"/admin/delivery/resubmission/{job.pk}/change/").text
    finish(job)
    assert "Its held deliveries are being cancelled" not in ann.get(f"{address}/").text
    head.refresh_from_db()
    assert head.status == Status.CANCELLED


def test_returns_only_to_the_page_of_the_button(ann: Client, head: Delivery) -> None:
    address = f"{LANE}/{head.lane_id}/retry/"
    back = f"{SUBSCRIPTION}/?status=ACTIVE"
    assert ann.post(address, {"next": back}).headers["Location"] == back
    for elsewhere in ("https://evil.example/", "//evil.example/", "javascript:alert(1)"):
        assert ann.post(address, {"next": elsewhere}).headers["Location"] == "/admin/"


def test_skips_only_the_message_that_the_page_showed(ann: Client, head: Delivery) -> None:
    follower = factories.delivery(subscription=head.subscription)
    Lane.objects.update(delivery_id=follower.pk)
    page = messages_after(ann, f"{LANE}/{head.lane_id}/skip/{head.pk}/")
    assert "Nothing was done" in page
    follower.refresh_from_db()
    assert follower.status == Status.PENDING
    ann.post(f"{LANE}/{head.lane_id}/skip/{follower.pk}/")
    follower.refresh_from_db()
    assert follower.status == Status.CANCELLED


def test_retrying_a_flowing_lane_is_explained(ann: Client, head: Delivery) -> None:
    Lane.objects.update(state="IDLE")
    assert "is no longer blocked by that message" in messages_after(
        ann, f"{LANE}/{head.lane_id}/retry/"
    )
    assert not JournalEntry.objects.filter(kind=JournalKind.RETRIED).exists()


def test_resumes_a_suspended_lane(ann: Client, head: Delivery) -> None:
    suspend(head)
    address = f"{LANE}/{head.lane_id}/resume/"
    assert f"{head.lane} is resumed." in messages_after(ann, address)
    assert head.lane is not None
    assert Lane.objects.get(pk=head.lane.pk).state == "BLOCKED"
    assert JournalEntry.objects.filter(kind=JournalKind.RESUMED, actor="ann").exists()
    assert "is no longer suspended" in messages_after(ann, address)


def test_skips_the_delivery_that_suspended_a_lane(ann: Client, head: Delivery) -> None:
    suspend(head)
    assert "is CANCELLED" in messages_after(ann, f"{LANE}/{head.lane_id}/skip/{head.pk}/")
    rejected = factories.delivery(Status.REJECTED)
    suspend(rejected)
    page = messages_after(ann, f"{LANE}/{rejected.lane_id}/skip/{rejected.pk}/")
    assert "was settled already" in page


def test_retrying_a_lane_suspended_meanwhile_recommends_resuming(
    ann: Client, head: Delivery
) -> None:
    suspend(head)
    page = messages_after(ann, f"{LANE}/{head.lane_id}/retry/")
    assert "was suspended meanwhile. Resume it." in page
    assert f"{LANE}/{head.lane_id}/resume/" in ann.get(f"{LANE}/").text


def test_cancels_the_chosen_deliveries_that_are_pending(ann: Client, head: Delivery) -> None:
    delivered = factories.delivery(Status.DELIVERED)
    chosen = {"action": "cancel_chosen", "_selected_action": [head.pk, delivered.pk]}
    page = ann.post("/admin/delivery/delivery/", chosen, follow=True).text
    assert "1 CANCELLED. 1 were neither open nor IN_DOUBT and are unchanged." in page


@pytest.mark.parametrize("verb", ["deactivate", "activate/deliver", "activate/cancel", "rotate"])
def test_readers_change_no_subscription(reader: Client, head: Delivery, verb: str) -> None:
    address = f"{SUBSCRIPTION}/{head.subscription_id}/{verb}/"
    assert reader.post(address).status_code == 403
    assert not ConfigurationChange.objects.exists()


@pytest.mark.parametrize("verb", ["retry", "skip", "resume"])
def test_readers_unblock_nothing(reader: Client, head: Delivery, verb: str) -> None:
    suffix = f"skip/{head.pk}" if verb == "skip" else verb
    assert reader.post(f"{LANE}/{head.lane_id}/{suffix}/").status_code == 403


@pytest.mark.parametrize("verb", ["deactivate", "activate/deliver", "rotate"])
def test_a_get_request_changes_nothing(ann: Client, head: Delivery, verb: str) -> None:
    assert ann.get(f"{SUBSCRIPTION}/{head.subscription_id}/{verb}/").status_code == 405
    assert ann.get(f"{LANE}/{head.lane_id}/retry/").status_code == 405


def test_without_login_nothing_changes(client: Client, head: Delivery) -> None:
    answer = client.post(f"{SUBSCRIPTION}/{head.subscription_id}/deactivate/")
    assert answer.headers["Location"].startswith("/admin/login/")
    head.subscription.refresh_from_db()
    assert head.subscription.status == "ACTIVE"


def test_a_backlog_is_delivered_or_cancelled(ann: Client, head: Delivery) -> None:
    assert ann.post(f"{SUBSCRIPTION}/{head.subscription_id}/activate/drop/").status_code == 400
