"""Addresses that do not exist, mistyped or mangled: never a server error."""

import pytest
from django.test import Client

from tests.support import factories

DIGITS = "9" * 5000


@pytest.mark.parametrize(
    "address",
    [
        "subscriptions/publisher/xx/history/",
        "subscriptions/publisher/999/history/",
        f"subscriptions/subscription/{DIGITS}/history/",
        f"delivery/delivery/{DIGITS}/change/",
        f"delivery/message/{DIGITS}/change/",
    ],
)
def test_a_missing_object_is_404(ann: Client, address: str) -> None:
    assert ann.get(f"/admin/{address}").status_code == 404


def test_a_person_gets_a_page_with_the_menu_and_a_script_of_it_a_line(ann: Client) -> None:
    address = "/admin/delivery/message/999/change/"
    page = ann.get(address, headers={"accept": "text/html"})
    assert (page.status_code, page.templates[0].name) == (404, "console/shared/problem.html")
    assert "Go to the first page" in page.text
    for answer in (
        ann.get(address, headers={"accept": "text/html", "HX-Request": "true"}),
        Client().get("/guide/no/such/page/", headers={"accept": "text/html"}),
    ):
        assert answer.headers["Content-Type"].startswith("text/plain")


@pytest.mark.parametrize("id", [DIGITS, "9" * 19, "xx"])
def test_a_subscription_that_no_row_can_be_leads_to_the_start(ann: Client, id: str) -> None:
    answer = ann.get(f"/admin/subscriptions/subscription/{id}/change/")
    assert answer.headers["Location"] == "/admin/"


@pytest.mark.parametrize(
    "address",
    [
        "apikey/add/?publisher=zz",
        "subscription/add/?event_type=x",
        f"subscription/add/?policy={DIGITS}",
        "publisher/add/?event_types=1,x",
        f"policy/add/?copy={DIGITS}",
    ],
)
def test_a_form_ignores_an_invalid_id(ann: Client, address: str) -> None:
    assert ann.get(f"/admin/subscriptions/{address}").status_code == 200


def test_a_form_starts_with_the_values_of_its_link(ann: Client) -> None:
    publisher = factories.publisher()
    page = ann.get(f"/admin/subscriptions/apikey/add/?publisher={publisher.pk}&scope=publish")
    assert page.context["adminform"].form.initial == {
        "publisher": str(publisher.pk),
        "scope": "publish",
    }


def test_a_search_for_too_large_a_number_finds_nothing(ann: Client) -> None:
    factories.delivery()
    for term in (DIGITS, f"msg_{DIGITS}"):
        page = ann.get("/admin/delivery/delivery/", {"q": term})
        assert (page.status_code, page.context["cl"].result_count) == (200, 0)
