"""The page of the configuration file: download, upload, review, apply."""

import re
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from delivery.configuration.document.document_json import document_text
from delivery.configuration.document.export import export_configuration
from delivery.models import PipelineRun, RunState, Step
from delivery.pipeline.request import MOST_WAITING
from subscriptions.models import ConfigurationChange, Publisher, Subscription
from tests.support import factories
from tests.unit.delivery.configuration.document.documents import document, some_of_everything

pytestmark = pytest.mark.django_db

ADDRESS = "/admin/configuration/"


def uploaded(client: Client, content: Any, **fields: str) -> str:
    text = content if isinstance(content, bytes) else document_text(content).encode()
    answer = client.post(ADDRESS, {"file": SimpleUploadedFile("inturn.json", text), **fields})
    assert answer.status_code == 200
    return answer.text


def applied(client: Client, page: str) -> Any:
    hidden = dict(re.findall(r'name="(sealed|digest)" value="([^"]+)"', page))
    return client.post(ADDRESS, hidden, follow=True)


def test_the_file_can_be_downloaded(ann: Client) -> None:
    some_of_everything()
    answer = ann.get(ADDRESS, {"download": ""})
    assert answer.text == document_text(export_configuration())
    assert "inturn.json" in answer.headers["Content-Disposition"]


def test_an_upload_shows_what_would_change_and_apply_does_it(ann: Client) -> None:
    page = uploaded(ann, document(publishers=[{"name": "github", "description": "<b>hooks"}]))
    assert "create publisher github" in page
    assert "&lt;b&gt;hooks" in page
    assert not Publisher.objects.exists()
    answer = applied(ann, page)
    assert "The file was applied: 1 to create" in answer.text
    assert Publisher.objects.get().description == "<b>hooks"
    assert ConfigurationChange.objects.get().actor == "ann"


def test_event_types_that_differ_in_case_are_warned_of(ann: Client) -> None:
    page = uploaded(
        ann, document(event_types=[{"name": "Jenkins.Build"}, {"name": "jenkins.build"}])
    )
    assert "the event types Jenkins.Build, jenkins.build differ only in case" in page
    assert "The file was applied: 2 to create" in applied(ann, page).text


def test_a_secret_is_applied_and_never_shown(ann: Client) -> None:
    some_of_everything()
    page = uploaded(ann, export_configuration(), secrets="env:ABC_ALL_TOKEN=a-new-token")
    assert "change subscription abc/all" in page
    assert "a-new-token" not in page
    applied(ann, page)
    assert Subscription.objects.get(name="all").auth["token"] == "a-new-token"


def test_what_is_refused_is_listed(ann: Client) -> None:
    page = uploaded(ann, document(publishers=[{"name": "b d"}], policies=[{"name": "strict"}]))
    assert "publisher b d" in page
    assert "policy strict" in page
    assert 'name="sealed"' not in page


@pytest.mark.parametrize("text", [b"{", b"\xff\xfe", b" ", b"x" * 1_100_000])
def test_what_is_no_document_is_refused(ann: Client, text: bytes) -> None:
    assert 'name="sealed"' not in uploaded(ann, text)


def test_what_changed_meanwhile_is_planned_again(ann: Client) -> None:
    page = uploaded(ann, document(publishers=[{"name": "github", "description": "a"}]))
    Publisher.objects.create(name="github")
    answer = applied(ann, page)
    assert "Nothing was changed: something changed meanwhile" in answer.text
    assert "change publisher github" in answer.text
    assert Publisher.objects.get().description == ""


def test_a_page_of_another_installation_is_refused(ann: Client) -> None:
    answer = ann.post(ADDRESS, {"sealed": "x", "digest": "y"})
    assert "Nothing was changed" in answer.text


def test_nothing_to_do_has_no_button(ann: Client) -> None:
    some_of_everything()
    page = uploaded(ann, export_configuration())
    assert "The installation matches the file." in page
    assert 'name="sealed"' not in page


def test_drift_is_shown_without_a_button_to_apply_it(ann: Client) -> None:
    some_of_everything()
    content = export_configuration()
    Publisher.objects.filter(name="anybody").update(description="<b>changed by hand")
    page = uploaded(ann, content, drift="yes")
    assert "Drift: 0 to create, 1 to change, 0 to delete" in page
    assert "change publisher anybody" in page
    assert "&lt;b&gt;changed by hand" in page
    assert "secrets had no value and were not compared" in " ".join(page.split())
    assert 'name="sealed"' not in page
    assert 'name="sealed"' in uploaded(ann, content)


def test_drift_includes_deletions_that_a_plan_refuses(ann: Client) -> None:
    factories.subscription(subscriber=factories.subscriber("abc"))
    content = document(subscribers=[])
    assert "The file has errors" in uploaded(ann, content, prune="on")
    page = " ".join(uploaded(ann, content, drift="yes").split())
    assert "delete subscriber abc" in page
    assert "Some cannot be applied" in page


def test_no_drift_is_reported_and_a_wrong_file_is_refused(ann: Client) -> None:
    some_of_everything()
    page = uploaded(ann, export_configuration(), drift="yes")
    assert "The installation matches the file." in page
    assert "Some cannot be applied" not in page
    page = uploaded(ann, document(publishers=[{"name": "b d"}]), drift="yes")
    assert "The file has errors" in page
    assert "publisher b d" in page


def narrowed() -> Any:
    """Create a subscription; return a document with a narrower filter for it."""
    factories.subscription("s", subscriber=factories.subscriber("abc"))
    changed = {"subscriber": "abc", "name": "s", "filter": "$$->'Body'->>'id' = '1'"}
    return document(subscriptions=[changed])


class TestDaysOfTheArchive:
    def test_a_preview_with_days_requests_a_run_and_links_to_it(self, ann: Client) -> None:
        page = uploaded(ann, narrowed(), days="30")
        run = PipelineRun.objects.get()
        assert (run.step, run.state, run.asked_by) == (Step.EFFECT, RunState.WAITING, "ann")
        assert run.asked_at - datetime.fromisoformat(run.options["since"]) == timedelta(days=30)
        assert f'href="/admin/delivery/pipelinerun/{run.pk}/change/"' in page
        assert "the last 30 days" in " ".join(page.split())
        assert "The file was applied" in applied(ann, page).text

    def test_a_plan_that_is_shown_again_requests_no_second_run(self, ann: Client) -> None:
        content = narrowed()
        content["subscriptions"][0]["timeout_seconds"] = 9
        page = uploaded(ann, content, days="30")
        Subscription.objects.update(timeout_seconds=7)
        answer = applied(ann, page)
        assert "something changed meanwhile" in answer.text
        assert PipelineRun.objects.count() == 1

    def test_the_same_preview_again_links_to_the_same_run(self, ann: Client) -> None:
        content = narrowed()
        pages = [uploaded(ann, content, days="30") for _ in range(2)]
        run = PipelineRun.objects.get()
        assert all(f"pipelinerun/{run.pk}/change/" in page for page in pages)

    def test_a_preview_requests_no_run_when_too_many_are_waiting(self, ann: Client) -> None:
        content = narrowed()
        for days in range(1, MOST_WAITING + 1):
            uploaded(ann, content, days=str(days))
        page = " ".join(uploaded(ann, content, days="30").split())
        assert "The archived messages are not tried: 5 runs of the step effect are waiting" in page
        assert "No subscription" not in page
        assert PipelineRun.objects.count() == MOST_WAITING
        assert "The file was applied" in applied(ann, page).text

    @pytest.mark.parametrize("fields", [{}, {"days": ""}, {"days": "30", "drift": "yes"}])
    def test_no_run_is_requested_without_days_or_for_drift(
        self, ann: Client, fields: dict[str, str]
    ) -> None:
        page = uploaded(ann, narrowed(), **fields)
        assert "change subscription abc/s" in page
        assert not PipelineRun.objects.exists()

    def test_no_run_is_requested_if_no_matches_change(self, ann: Client) -> None:
        page = uploaded(ann, document(publishers=[{"name": "github"}]), days="30")
        assert "No subscription's matches change" in page
        assert not PipelineRun.objects.exists()

    @pytest.mark.parametrize("days", ["0", "3661", "x"])
    def test_an_impossible_number_of_days_is_refused(self, ann: Client, days: str) -> None:
        page = uploaded(ann, narrowed(), days=days)
        assert "change subscription abc/s" not in page
        assert not PipelineRun.objects.exists()

    def test_only_who_may_run_the_pipeline_can_request_one(self) -> None:
        user = User.objects.create_user("carl", is_staff=True)
        user.user_permissions.set(
            Permission.objects.filter(content_type__app_label="subscriptions")
        )
        carl = Client()
        carl.force_login(user)
        content = narrowed()
        assert 'name="days"' not in carl.get(ADDRESS).text
        assert "change subscription abc/s" in uploaded(carl, content, days="30")
        assert not PipelineRun.objects.exists()
        user.user_permissions.add(Permission.objects.get(codename="add_pipelinerun"))
        assert 'name="days"' in carl.get(ADDRESS).text
        uploaded(carl, content, days="30")
        assert PipelineRun.objects.get().asked_by == "carl"


def test_who_may_only_look_does_not_see_it(reader: Client) -> None:
    assert reader.get(ADDRESS).status_code == 403
    assert ADDRESS not in reader.get("/admin/").text


def test_the_sidebar_leads_to_it(ann: Client) -> None:
    assert f'href="{ADDRESS}"' in ann.get("/admin/").text
