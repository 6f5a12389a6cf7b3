"""The administrator writes a script in the browser and tries it before saving it."""

import pytest
from playwright.sync_api import expect

from subscriptions.models import EventType, Subscription
from tests.support import factories
from tests.system.browser.visitor import ConsoleVisitor

pytestmark = pytest.mark.django_db(transaction=True)

SCRIPT = """var fields = $inmessage.updated;
$outmessage = { key: fields.id, summary: fields.title };
$param = fields.id;
$outheader = { 'X-Project': fields.project };
"""


@pytest.fixture
def event_type(transactional_db: None) -> EventType:
    row = factories.event_type(
        "TeamForge.Artifact.Update",
        sample={"updated": {"id": "artf1234", "title": "It does not start", "project": "proj1008"}},
    )
    for number in range(3):
        factories.message(b'{"updated": {"id": "artf%d", "title": "T"}}' % number, event_type=row)
    return row


@pytest.mark.slow
def test_a_script_is_tried_before_it_is_saved(event_type: EventType, ann: ConsoleVisitor) -> None:
    page = ann.page
    page.goto(f"/admin/subscriptions/subscription/add/?event_type={event_type.pk}")
    page.locator("#id_script").fill(SCRIPT)
    expect(page.get_by_text("Valid script.")).to_be_visible()
    page.get_by_role("button", name="Test the script").click()
    tested = page.locator("#script-tested")
    expect(tested).to_contain_text('{"key":"artf1234","summary":"It does not start"}')
    expect(tested).to_contain_text("X-Project")
    ann.photograph("script-tried")
    page.get_by_label("one of the last messages").check()
    page.get_by_role("button", name="Test the script").click()
    expect(tested).to_contain_text("artf2")
    tested.get_by_role("button", name="msg_").last.click()
    expect(tested).to_contain_text('"key":"artf0"')
    assert not Subscription.objects.exists()


def test_the_editor_marks_the_line_of_an_error(event_type: EventType, ann: ConsoleVisitor) -> None:
    page = ann.page
    row = factories.subscription(event_type=event_type, script=SCRIPT)
    page.goto(f"/admin/subscriptions/subscription/{row.pk}/change/")
    page.locator("#id_script").fill(SCRIPT + "$outmessage.by = $inmessage.author.name;\n")
    page.get_by_role("button", name="Test the script").click()
    expect(page.locator("#script-tested")).to_contain_text("line 5: TypeError")
    expect(page.locator(".inturn-gutter mark")).to_have_text("5\n")
    ann.photograph("script-fails")
    page.locator("#script-tested").get_by_role("button", name="Go to line 5").click()
    expect(page.locator("#id_script")).to_be_focused()
    page.keyboard.type("//")
    expect(page.locator(".inturn-gutter mark")).to_be_empty()
    page.locator("#id_script").fill("var a;\nvar = 1;")
    expect(page.locator("#script-checked")).to_contain_text("line 2")
    expect(page.locator(".inturn-gutter mark")).to_have_text("2\n")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("line 2: SyntaxError").first).to_be_visible()
    expect(page.locator(".inturn-gutter mark")).to_have_text("2\n")
