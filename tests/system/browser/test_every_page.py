"""Every page in a browser: no errors, no calls to other hosts, not wider than the window."""

import re
from pathlib import Path

import pytest
from django.contrib.staticfiles import finders
from django.utils import timezone
from playwright.sync_api import expect

from delivery.models import JournalEntry, RetentionRun
from delivery.states import Status
from subscriptions.models import ConfigurationChange, Policy
from tests.support import factories
from tests.support.quick import STRIDE
from tests.system.browser.accessibility import unknown_icons
from tests.system.browser.visitor import SCREENSHOTS, ConsoleVisitor

pytestmark = pytest.mark.django_db(transaction=True)

LISTS = {
    "subscribers": "subscriptions/subscriber",
    "subscriptions": "subscriptions/subscription",
    "built-in-receivers": "delivery/builtinreceiver",
    "messages": "delivery/message",
    "deliveries": "delivery/delivery",
    "resubmissions": "delivery/resubmission",
    "lanes": "delivery/lane",
    "url-health-empty": "delivery/urlhealth",
    "journal": "delivery/journalentry",
    "retention": "delivery/retentionrun",
    "event-types": "subscriptions/eventtype",
    "publishers": "subscriptions/publisher",
    "keys": "subscriptions/apikey",
    "policies": "subscriptions/policy",
    "common-scripts": "subscriptions/commonscript",
    "configuration-changes": "subscriptions/configurationchange",
    "users": "auth/user",
    "roles": "auth/group",
}
# Also by axe in the quick run; `--full` checks every page that any test photographs.
CHECKED = ("subscriptions", "deliveries")
# Of a row, in pixels, with its padding.
TWO_LINES = 70
FORMS = (
    "subscribers",
    "built-in-receivers",
    "subscriptions",
    "event-types",
    "publishers",
    "keys",
    "policies",
    "common-scripts",
    "users",
    "roles",
)


@pytest.fixture
def rows(transactional_db: None) -> None:
    factories.api_key()
    for status in (Status.PENDING, Status.DELIVERED, Status.REJECTED, Status.IN_DOUBT):
        factories.delivery(status, reason="what happened, at some length, as it stands in the row")
    JournalEntry.objects.create(kind="UNMATCHED", text="msg_1 matched nothing.", message_id=1)
    RetentionRun.objects.create(
        state="DONE", messages=1_204, deliveries=3_612, attempts=3_700, ended_at=timezone.now()
    )
    RetentionRun.objects.create(
        first_id=1, position=40, last_id=100, messages=40, deliveries=80, attempts=90
    )
    ConfigurationChange.objects.create(
        actor="ann",
        action="changed",
        object_type="subscriber",
        object_name="crm",
        before={"a": 1},
        after={"a": 2},
    )


def test_every_list_can_be_read_at_any_width(rows: None, ann: ConsoleVisitor) -> None:
    for place, (name, address) in enumerate(LISTS.items()):
        # Most of a list is the same everywhere.
        if place % STRIDE and name not in CHECKED and not SCREENSHOTS:
            continue
        ann.page.goto(f"/admin/{address}/")
        ann.page.locator("#result_list, .inturn-empty").first.wait_for()
        ann.photograph(name, is_checked=name in CHECKED)


def test_a_row_of_a_list_has_two_lines_on_a_phone(rows: None, ann: ConsoleVisitor) -> None:
    ann.page.set_viewport_size({"width": 390, "height": 844})
    for name in ("messages", "subscriptions", "subscribers", "event-types", "users", "deliveries"):
        ann.page.goto(f"/admin/{LISTS[name]}/")
        row = ann.page.locator("#result_list tr.data-row").first
        box = row.bounding_box()
        assert box is not None
        assert box["height"] <= TWO_LINES, name
        # It is a link from edge to edge.
        if name == "deliveries":
            row.click(position={"x": box["width"] - 2, "y": 2})
            ann.page.wait_for_url("**/change/", timeout=10_000)


def test_the_font_of_icons_has_what_the_styles_draw(ann: ConsoleVisitor) -> None:
    styles = finders.find("unfold/css/styles.css")
    assert styles is not None
    names = sorted(set(re.findall(r'content:"([a-z_]{3,})"', Path(styles).read_text())))
    assert "check_small" in names
    ann.page.evaluate(
        """names => document.body.append(...names.map((name) => {
             const icon = document.createElement("span");
             icon.className = "material-symbols-outlined";
             icon.textContent = name;
             return icon;
           }))""",
        names,
    )
    assert unknown_icons(ann.page) == []


def test_the_keyboard_skips_the_menu_and_opens_it(ann: ConsoleVisitor) -> None:
    ann.page.goto("/admin/delivery/journalentry/")
    ann.page.keyboard.press("Tab")
    skip = ann.page.get_by_role("link", name="Skip to the content")
    expect(skip).to_be_focused()
    skip.press("Enter")
    expect(ann.page.get_by_role("main")).to_be_focused()
    ann.page.set_viewport_size({"width": 390, "height": 844})
    menu = ann.page.get_by_role("link", name="Lanes", exact=True)
    expect(menu).to_be_hidden()
    ann.page.get_by_role("button", name="Menu").press("Enter")
    expect(menu).to_be_visible()
    ann.page.get_by_role("button", name="Close the menu").press("Enter")
    expect(menu).to_be_hidden()


@pytest.mark.slow
def test_every_form_can_be_filled_in_at_any_width(rows: None, ann: ConsoleVisitor) -> None:
    for name in FORMS:
        ann.page.goto(f"/admin/{LISTS[name]}/add/")
        ann.page.get_by_role("button", name="Save", exact=True).wait_for()
        ann.photograph(f"{name}-add")


@pytest.mark.slow
def test_the_guide_can_be_read_at_any_width(ann: ConsoleVisitor) -> None:
    ann.page.goto("/admin/")
    ann.page.get_by_role("navigation").get_by_role("link", name="Guide").click()
    ann.page.locator(".inturn-guide-index").wait_for()
    ann.photograph("guide")
    for name in ("Speed", "Settings", "The history", "Roles and rights", "Operate and grow"):
        ann.page.get_by_role("link", name=name, exact=True).click()
        expect(ann.page.locator(".inturn-guide table").first).to_be_visible()
        ann.photograph(f"guide-{name.lower().replace(' ', '-')}")


def test_the_guide_is_searched_by_keyboard(ann: ConsoleVisitor) -> None:
    ann.page.goto("/guide/settings/")
    ann.page.get_by_label("Search the guide").press_sequentially("connection pooler")
    ann.page.keyboard.press("Enter")
    hit = ann.page.get_by_role("link", name="Connection poolers")
    expect(hit).to_be_visible()
    ann.photograph("guide-search")
    hit.press("Enter")
    expect(ann.page).to_have_url(re.compile("/guide/operating/#connection-poolers"))
    expect(ann.page.get_by_role("heading", name="Connection poolers")).to_be_in_viewport()
    ann.page.goto("/guide/?q=zebra")
    expect(ann.page.get_by_text("No section contains all of these words")).to_be_visible()
    ann.photograph("guide-search-nothing")


@pytest.mark.slow
def test_a_page_of_the_console_leads_to_the_guide_about_it(ann: ConsoleVisitor) -> None:
    ann.page.goto("/admin/subscriptions/apikey/")
    ann.page.get_by_title("Guide to this page").click()
    expect(ann.page.get_by_role("heading", name="Keys", exact=True)).to_be_in_viewport()


@pytest.mark.slow
def test_a_message_shows_its_payload_as_text(ann: ConsoleVisitor) -> None:
    message = factories.message(b"<script>document.title = 'taken over'</script>")
    subscription = factories.subscription(event_type=message.event_type)
    delivery = factories.delivery(
        Status.REJECTED, message=message, subscription=subscription, attempts=2
    )
    factories.attempt(delivery, number=1, excerpt=b"<img src=x onerror=alert(1)>")
    factories.attempt(delivery, number=2)
    ann.page.goto(f"/admin/delivery/message/{message.pk}/change/")
    assert "taken over" not in ann.page.title()
    assert "<script>document.title" in "".join(
        ann.page.locator(".inturn-payload").all_inner_texts()
    )
    ann.page.get_by_text("Request and response").last.click()
    expect(ann.page.get_by_text("of the response").last).to_be_visible()
    ann.photograph("message")
    ann.page.goto(f"/admin/delivery/delivery/{delivery.pk}/change/")
    ann.photograph("delivery")


@pytest.mark.slow
def test_a_built_in_policy_is_read_and_copied(ann: ConsoleVisitor) -> None:
    policy, _ = Policy.objects.get_or_create(name="strict", defaults={"is_built_in": True})
    ann.page.goto(f"/admin/subscriptions/policy/{policy.pk}/change/")
    assert ann.page.get_by_role("button", name="Save").count() == 0
    ann.photograph("policy")
    ann.page.goto("/admin/subscriptions/policy/")
    row = ann.page.get_by_role("row").filter(
        has=ann.page.get_by_role("link", name="strict", exact=True)
    )
    row.get_by_role("link", name="Copy").click()
    assert ann.page.locator("#id_name").input_value() == "strict-copy"


def test_a_policy_form_shows_effective_fields_and_errors_at_their_field(
    ann: ConsoleVisitor,
) -> None:
    ann.page.goto("/admin/subscriptions/policy/add/")
    attempts, percent = (
        ann.page.locator(f"#id_{name}") for name in ("max_attempts", "breaker_percent")
    )
    expect(attempts).to_be_hidden()
    expect(percent).to_be_hidden()
    ann.page.locator("#id_name").fill("mine")
    row = ann.page.locator("#id_on_unreachable")
    expect(row.get_by_label("Block")).to_be_checked()
    row.get_by_label("Retry in place").check()
    expect(ann.page.get_by_text("Retries come 10 s after each failure")).to_be_visible()
    ann.page.locator("#id_when_used_up").select_option("SUSPEND")
    ann.page.get_by_role("checkbox", name="Circuit breaker").check()
    expect(percent).to_be_visible()
    ann.photograph("policy-form")
    ann.page.get_by_role("button", name="Save", exact=True).click()
    expect(ann.page.locator("#id_max_attempts_error")).to_contain_text(
        "Say after how many attempts the lane is suspended"
    )
    # The banner leads to the wrong field, which has the focus.
    expect(attempts).to_be_focused()
    expect(ann.page.get_by_role("alert").get_by_role("link", name="Max attempts")).to_be_visible()
    ann.photograph("policy-refused")
    attempts.fill("5")
    ann.page.get_by_role("button", name="Save and continue editing").click()
    expect(ann.page.get_by_text("the lane is SUSPENDED with that delivery on top")).to_be_visible()
    ann.photograph("policy-in-words")


@pytest.mark.slow
def test_filters_open_and_stay_in_the_url(rows: None, ann: ConsoleVisitor) -> None:
    ann.page.goto("/admin/delivery/delivery/")
    ann.page.locator("summary").get_by_text("Filters").click()
    ann.photograph("deliveries-filters")
    ann.page.get_by_label("Message", exact=True).fill("msg_1")
    ann.page.get_by_role("button", name="Apply filters").click()
    expect(ann.page).to_have_url(re.compile("message=msg_1"))
