"""The configuration file in the browser: upload, read the changes, apply."""

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from delivery.configuration.document.document_json import document_text
from delivery.configuration.document.export import export_configuration
from delivery.models import PipelineRun, RunState
from subscriptions.models import Publisher, Subscription
from tests.system.browser.visitor import ConsoleVisitor
from tests.unit.delivery.configuration.document.documents import document, some_of_everything

pytestmark = pytest.mark.django_db(transaction=True)


def upload(visitor: ConsoleVisitor, content: object, *, button: str = "Preview changes") -> None:
    file = {
        "name": "inturn.json",
        "mimeType": "application/json",
        "buffer": document_text(content).encode(),  # type: ignore[arg-type]
    }
    visitor.page.locator("input[type=file]").set_input_files(file)  # type: ignore[arg-type]
    visitor.page.get_by_role("button", name=button).click()


def test_a_file_is_uploaded_read_and_applied(ann: ConsoleVisitor) -> None:
    some_of_everything()
    content = export_configuration()
    content["publishers"].append({"name": "github", "description": "GitHub's hooks"})
    content["subscriptions"][2] |= {
        "timeout_seconds": 7,
        "filter": "$$->'Body'->>'id' in ('1008', '1009')",
    }
    ann.page.get_by_role("navigation").get_by_role("link", name="Configuration file").click()
    expect(ann.page.get_by_role("heading", name="Apply a file")).to_be_visible()
    ann.photograph("configuration-file")
    upload(ann, content)
    expect(ann.page.get_by_text("change subscription abc/project-1008")).to_be_visible()
    ann.photograph("configuration-file-plan")
    ann.page.get_by_role("button", name="Apply", exact=True).click()
    expect(ann.page.get_by_text("The file was applied")).to_be_visible()
    ann.photograph("configuration-file-applied")
    assert Publisher.objects.filter(name="github").exists()
    assert Subscription.objects.get(name="project-1008").timeout_seconds == 7


@pytest.mark.slow
def test_drift_is_shown_and_cannot_be_applied(ann: ConsoleVisitor) -> None:
    some_of_everything()
    content = export_configuration()
    Publisher.objects.filter(name="anybody").update(description="changed by hand")
    Publisher.objects.create(name="by-hand")
    ann.page.goto("/admin/configuration/")
    upload(ann, content, button="Show drift")
    expect(ann.page.get_by_text("delete publisher by-hand")).to_be_visible()
    expect(ann.page.get_by_role("button", name="Apply", exact=True)).to_have_count(0)
    ann.photograph("configuration-file-drift", is_checked=True)


@pytest.mark.slow
def test_a_preview_leads_to_the_run_that_tries_the_archive(ann: ConsoleVisitor) -> None:
    some_of_everything()
    content = export_configuration()
    content["subscriptions"][2]["filter"] = "$$->'Body'->>'id' in ('1008', '1009')"
    ann.page.goto("/admin/configuration/")
    ann.page.get_by_label("Days of the archive to try").fill("30")
    upload(ann, content)
    expect(ann.page.get_by_text("tries the archived messages of the last 30 days")).to_be_visible()
    ann.photograph("configuration-file-days", is_checked=True)
    run = PipelineRun.objects.get()
    ann.page.get_by_role("link", name=str(run).capitalize()).click()
    expect(ann.page.get_by_role("heading", name="Queued")).to_be_visible()
    ann.photograph("effect-waiting")
    figures = {"asked": 48_210, "more": 1_204, "fewer": 312}
    examples = {"example_of_more": 12, "example_of_fewer": 17}
    found = {"subscription": "subscription abc/project-1008", **figures, **examples}
    PipelineRun.objects.update(
        state=RunState.DONE,
        ended_at=timezone.now(),
        result={"until": "2026-11-22T10:00:00+00:00", "effects": [found]},
    )
    expect(ann.page.get_by_role("link", name="for example msg_17")).to_be_visible()
    ann.photograph("effect-done", is_checked=True)


@pytest.mark.slow
def test_a_file_that_is_refused_says_why(ann: ConsoleVisitor) -> None:
    some_of_everything()
    ann.page.goto("/admin/configuration/")
    wrong = {"subscriber": "abc", "name": "all", "filter": "$$->'Body' =", "timeout_seconds": 0}
    upload(ann, document(publishers=[{"name": "git hub"}], subscriptions=[wrong]))
    expect(ann.page.get_by_role("heading", name="The file has errors")).to_be_visible()
    ann.photograph("configuration-file-refused")
