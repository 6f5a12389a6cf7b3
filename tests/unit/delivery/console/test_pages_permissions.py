"""Role × page × action: rights to view and to change; no page offers a forbidden action."""

from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import transaction
from django.test import Client
from django.urls import Resolver404, resolve

from delivery.models import Delivery
from subscriptions.models import Publisher
from tests.unit.delivery.console.everything import fingerprint, make_everything
from tests.unit.delivery.console.matrix import (
    ADMINISTRATOR,
    ALL,
    AUDITOR,
    DEVELOPER,
    FOR_ALL,
    MATRIX,
    OF_DJANGO,
    SUPPORT,
    Row,
    address_of,
    addresses,
)

NO_ROLE = "no role"
REFUSED = {403, 405}
# They change nothing: sign-out, the test of a filter, a report, which only reads, and a cookie.
HARMLESS = {
    "/admin/logout/",
    "/admin/subscriptions/subscription/filter-test/",
    "/admin/delivery/pipelinerun/report/",
    "/admin/first-steps/dismiss/",
}
# Calls the endpoint, which does not exist.
_CALLS_OUT = {"subscriptions_subscription_send_test"}


@pytest.fixture
def everything(db: None) -> dict[str, dict[str, Any]]:
    return make_everything()


# Auditors may do little and people without a role nothing, so a lack of a check shows with them.
OTHERS = [
    pytest.param(role, marks=pytest.mark.slow) for role in sorted((ALL | {DEVELOPER}) - {AUDITOR})
]


@pytest.fixture(params=[AUDITOR, *OTHERS, NO_ROLE])
def role(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def visitor(db: None, role: str) -> Client:
    return visitor_of(role)


def visitor_of(role: str) -> Client:
    user = User.objects.create_user("visitor", is_staff=True)
    if role != NO_ROLE:
        user.groups.add(Group.objects.get(name=role))
    for publisher in Publisher.objects.all():
        publisher.developers.add(user)
    # A script is refused in one line: the pages for people took a quarter of the time.
    client = Client(headers={"accept": "text/plain"})
    client.force_login(user)
    return client


def every_address(everything: dict[str, dict[str, Any]]) -> Iterator[tuple[str, Row, str]]:
    """Yield name, row and address of each page."""
    for name in sorted(MATRIX):
        yield name, MATRIX[name], address_of(name, everything)


def test_every_page_has_a_row() -> None:
    named = {str(pattern.name) for pattern in addresses()}
    assert named - OF_DJANGO == set(MATRIX)


def test_only_people_with_the_right_may_look_and_nothing_forbidden_is_offered(
    everything: dict[str, dict[str, Any]], visitor: Client, role: str
) -> None:
    wrong: list[tuple[object, ...]] = []
    for name, row, address in every_address(everything):
        answer = visitor.get(address)
        is_shown = answer.status_code in (200, 302)
        if is_shown != (role in row.get) and name not in FOR_ALL:
            wrong.append((name, answer.status_code))
        # An app without any visible model has no page.
        refused = {404} if name == "app_list" else REFUSED
        assert is_shown or answer.status_code in refused, (name, answer.status_code)
        if role in row.get and answer.status_code == 200:
            # For the next user of the browser, and others behind the same proxy.
            assert "no-store" in answer.headers["Cache-Control"], name
            if not answer.streaming:
                wrong += forbidden_offers(name, row, answer.text, role)
    assert wrong == []


def test_only_people_with_the_right_may_change(
    everything: dict[str, dict[str, Any]], visitor: Client, role: str
) -> None:
    wrong = []
    before = fingerprint()
    for name, row, address in every_address(everything):
        if role not in row.post:
            status = visitor.post(address, {"post": "yes"}).status_code
            is_wrong = row.is_action and status not in REFUSED
        elif name in _CALLS_OUT:
            continue
        else:
            with transaction.atomic():
                status = visitor.post(address, {"post": "yes"}).status_code
                transaction.set_rollback(True)
            is_wrong = status not in (200, 302)
        if is_wrong:
            wrong.append((name, status))
    assert wrong == []
    # Once, because digests of all tables take longer than the page.
    assert fingerprint() == before


def test_every_action_works_for_people_with_the_right(
    everything: dict[str, dict[str, Any]],
) -> None:
    """A refusal must mean that the right is missing, not that the action does nothing."""
    visitor = visitor_of(ADMINISTRATOR)
    before = fingerprint()
    idle = []
    # They need a filled-in form, or change nothing by themselves.
    spared = {
        "delivery_delivery_edit",
        "delivery_delivery_mark_delivered",
        "delivery_retentionrun_start",
        "delivery_pipelinerun_report",
        "subscriptions_subscription_filter_test",
        "subscriptions_subscription_script_test",
        "subscriptions_subscription_end_secret",
        "subscriptions_subscription_activate",
        "subscriptions_subscription_restore",
        "subscriptions_subscription_restore_chosen",
        "subscriptions_subscriber_activate",
        "subscriptions_subscriber_restore",
        "subscriptions_subscriber_restore_chosen",
        "sending_release",
        "first_steps_dismiss",
        "subscriptions_eventtype_publish",
        "subscriptions_policy_preview",
        "subscriptions_subscription_rewrite",
        "saved_view_rename",
        *_CALLS_OUT,
    }
    for name, row, address in every_address(everything):
        if row.is_action and name not in spared:
            with transaction.atomic():
                visitor.post(address)
                if fingerprint() == before:
                    idle.append(name)
                transaction.set_rollback(True)
    assert idle == []


def test_strangers_are_led_to_the_door(everything: dict[str, dict[str, Any]]) -> None:
    before = fingerprint()
    stranger = Client()
    for name, _, address in every_address(everything):
        for answer in (stranger.get(address), stranger.post(address, {"post": "yes"})):
            is_sent_away = answer.status_code == 302 and answer.headers["Location"].startswith(
                "/admin/login/"
            )
            assert is_sent_away or answer.status_code in REFUSED, (name, answer.status_code)
    assert fingerprint() == before


def test_a_refresh_reloads_the_page_of_people_who_may_not_see_it(
    everything: dict[str, dict[str, Any]],
) -> None:
    """They were signed out, or lost their role, while the page was open."""
    stranger, visitor = Client(), visitor_of(NO_ROLE)
    script = {"HX-Request": "true", "accept": "*/*"}
    for name, _, address in every_address(everything):
        for answer in (
            stranger.get(address, headers=script),
            stranger.post(address, headers=script),
        ):
            assert (answer.headers["HX-Refresh"], answer.content) == ("true", b""), name
        if visitor.get(address).status_code == 403:
            answer = visitor.get(address, headers=script)
            assert (answer.headers["HX-Refresh"], answer.content) == ("true", b""), name


@pytest.mark.parametrize("verb", ["resubmit_chosen", "cancel_chosen", "mark_chosen_delivered"])
def test_an_auditor_has_no_actions_on_selected_rows(
    everything: dict[str, dict[str, Any]], verb: str
) -> None:
    visitor = visitor_of(AUDITOR)
    before = fingerprint()
    picked = list(Delivery.objects.values_list("pk", flat=True))
    visitor.post(
        "/admin/delivery/delivery/", {"action": verb, "_selected_action": picked, "index": 0}
    )
    assert fingerprint() == before


class ShownPage(HTMLParser):
    """The links of a page, and its buttons with their addresses."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.posts: set[str] = set()
        self._form: dict[str, str | None] | None = None
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "a" and given.get("href"):
            self.links.add(str(given["href"]))
        if tag == "form":
            self._form = given
        if given.get("formaction"):
            self.posts.add(str(given["formaction"]))
        elif given.get("hx-post"):
            self.posts.add(str(given["hx-post"]))
        elif (
            self._is_submit(tag, given)
            and str((self._form or {}).get("method", "get")).lower() == "post"
        ):
            self.posts.add(str((self._form or {}).get("action") or "this page"))

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._form = None

    def _is_submit(self, tag: str, given: dict[str, str | None]) -> bool:
        kind = given.get("type")
        return (tag == "button" and kind in (None, "submit")) or (
            tag == "input" and kind == "submit"
        )


def row_of(address: str) -> Row | None:
    """Return the row of an address of the console, None for any other."""
    try:
        match = resolve(address.partition("?")[0].partition("#")[0])
    except Resolver404:
        return None
    return MATRIX.get(match.url_name or "") if match.app_name == "admin" else None


def forbidden_offers(name: str, row: Row, page: str, role: str) -> Iterator[tuple[str, ...]]:
    """Yield the links and buttons of a page that lead to what the role may not."""
    shown = ShownPage(page)
    if role == AUDITOR and not shown.posts <= HARMLESS:
        yield (name, "changes", *shown.posts - HARMLESS)
    for link in shown.links:
        leads_to = row_of(link)
        if leads_to is not None and role not in leads_to.get:
            yield (name, "link", link)
    for button in shown.posts - {"/admin/logout/"}:
        leads_to = row if button == "this page" else row_of(button)
        if leads_to is None or role not in leads_to.post:
            yield (name, "button", button)


def test_support_sees_the_buttons_that_rescue(everything: dict[str, dict[str, Any]]) -> None:
    visitor = visitor_of(SUPPORT)
    for page, verbs in {
        "delivery_lane_changelist": ["/retry/", "/resume/"],
        "delivery_delivery_change": ["/resubmit/"],
        "delivery_urlhealth_change": ["/release/"],
        "subscriptions_subscription_changelist": ["/deactivate/"],
        "subscriptions_subscription_status": ["/deactivate/"],
        "index": ["/deactivate/", "/retry/", "/skip/"],
    }.items():
        posts = ShownPage(visitor.get(address_of(page, everything)).text).posts
        for verb in verbs:
            assert any(verb in post for post in posts), (page, verb, posts)


@pytest.mark.django_db
def test_without_a_role_the_first_page_names_the_administrator() -> None:
    page = visitor_of(NO_ROLE).get("/admin/").text
    assert "Ask an administrator to give visitor a role" in page
    assert 'id="overview"' not in page
