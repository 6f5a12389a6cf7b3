"""The form warns of a second subscription for the same messages, as a double click makes it."""

from django.test import Client

from tests.unit.delivery.console.subscription_form import form_values

ADDRESS = "/admin/subscriptions/subscription/add/"


def test_a_second_subscription_for_the_same_messages_is_reported(ann: Client) -> None:
    values = form_values(name="once")
    assert "more than once" not in ann.post(ADDRESS, values, follow=True).text
    ann.post(ADDRESS, values | {"name": "twice"})
    page = ann.get("/admin/subscriptions/subscription/")
    assert "crm gets each of these messages more than once: once has" in page.text
