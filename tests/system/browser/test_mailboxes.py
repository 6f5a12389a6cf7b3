"""Mailboxes in the browser: created without an endpoint, inspected, and explained."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission, User
from django.utils import timezone
from playwright.sync_api import expect

from delivery.states import OutcomeClass, Status
from subscriptions.models import Mode, Subscription
from tests.support import factories
from tests.system.browser.visitor import ConsoleVisitor

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.slow
def test_the_form_of_a_mailbox_has_no_endpoint(ann: ConsoleVisitor) -> None:
    subscriber, event_type = factories.subscriber("depot"), factories.event_type("Parcel.Left")
    ann.page.goto(
        "/admin/subscriptions/subscription/add/"
        f"?subscriber={subscriber.pk}&event_type={event_type.pk}"
    )
    endpoint, receives = ann.page.locator("#id_endpoint"), ann.page.locator("#id_max_receives")
    expect(receives).to_be_hidden()
    ann.page.locator("#id_name").fill("parcels")
    endpoint.fill("typed before the mode was chosen")
    ann.page.locator("#id_mode").select_option("PULL")
    for name in ("endpoint", "timeout_seconds", "probe_url", "header_lines", "auth_type", "token"):
        expect(ann.page.locator(f"#id_{name}")).to_be_hidden()
    receives.fill("5")
    ann.photograph("pull-add")
    ann.page.get_by_role("button", name="Save", exact=True).click()
    expect(ann.page.get_by_text("wait in its mailbox")).to_be_visible()
    ann.page.get_by_role("link", name="Edit").click()
    expect(ann.page.locator("#id_mode")).to_be_disabled()
    expect(receives).to_have_value("5")
    ann.photograph("pull-made")
    assert Subscription.objects.get().endpoint == ""


@pytest.mark.slow
def test_a_mailbox_is_readable_at_any_width(ann: ConsoleVisitor) -> None:
    subscription = factories.subscription(
        "parcels", subscriber=factories.subscriber("depot"), mode=Mode.PULL, max_receives=5
    )
    soon = timezone.now() + timedelta(minutes=5)
    factories.delivery(subscription=subscription)
    out = factories.delivery(
        Status.IN_FLIGHT,
        subscription=subscription,
        lease_expires_at=soon,
        receive_count=2,
        attempts=1,
    )
    factories.attempt(out, number=1, outcome=OutcomeClass.UNACKNOWLEDGED, status_code=None)
    too_long = factories.delivery(
        Status.IN_FLIGHT,
        subscription=subscription,
        lease_expires_at=timezone.now(),
        receive_count=1,
    )
    again = factories.delivery(
        subscription=subscription,
        receive_count=1,
        attempts=1,
        attempts_before=1,
        reason="resubmitted by ann",
    )
    pages = {
        "mailbox-overview": "",
        "mailbox-subscription": f"subscriptions/subscription/{subscription.pk}/",
        "mailbox-delivery": f"delivery/delivery/{out.pk}/change/",
        "mailbox-delivery-too-long": f"delivery/delivery/{too_long.pk}/change/",
        "mailbox-delivery-again": f"delivery/delivery/{again.pk}/change/",
        "mailbox-message": f"delivery/message/{out.message_id}/change/",
        "mailbox-deliveries": "delivery/delivery/?status=IN_FLIGHT",
    }
    for name, address in pages.items():
        ann.page.goto(f"/admin/{address}")
        ann.photograph(name)
    ann.page.goto(f"/admin/subscriptions/subscriber/{subscription.subscriber_id}/")
    ann.page.get_by_text("How to fetch").click()
    expect(ann.page.get_by_text("manage.py listen depot").first).to_be_visible()
    ann.photograph("mailbox-subscriber")


@pytest.mark.slow
@pytest.mark.parametrize("mode", Mode.values)
def test_a_reader_sees_the_destination_of_messages(
    ann: ConsoleVisitor, administrator: User, mode: str
) -> None:
    User.objects.update(is_superuser=False, is_staff=True)
    administrator.user_permissions.set(Permission.objects.filter(codename__startswith="view_"))
    subscription = factories.subscription(mode=mode)
    ann.page.goto(f"/admin/subscriptions/subscription/{subscription.pk}/change/")
    shown = ann.page.get_by_text("Max receives" if mode == Mode.PULL else subscription.endpoint)
    expect(shown).to_be_visible()
    assert ann.page.get_by_text("Timeout seconds").count() == (mode == Mode.PUSH)
    ann.photograph(f"subscription-looked-at-{mode}")
