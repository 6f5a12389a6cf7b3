"""Pipeline runs in the console: started, observed, stopped; reports and schedules."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.utils import timezone

from delivery.models import Finding, PipelineRun, PipelineSchedule, RunState, Step
from subscriptions.models import ConfigurationChange
from tests.support import factories
from tests.unit.delivery.console import history_rows
from tests.unit.delivery.console.refreshing import refresh

PAGE = "/admin/delivery/pipelinerun/"
WANTED = {"since": "2026-01-01T00:00", "until": "2026-02-01T00:00", "format": "csv"}

pytestmark = pytest.mark.django_db


@pytest.fixture
def auditor() -> Client:
    return signed_in("audrey", "Auditors")


def signed_in(name: str, role: str) -> Client:
    user = User.objects.create_user(name, is_staff=True)
    user.groups.add(Group.objects.get(name=role))
    client = Client()
    client.force_login(user)
    return client


def page_of(run: PipelineRun) -> str:
    return f"{PAGE}{run.pk}/change/"


class TestRuns:
    def test_a_step_is_begun_by_its_button_and_its_page_opens(self, ann: Client) -> None:
        assert f"{PAGE}request/export/" in ann.get(PAGE).text
        answer = ann.post(f"{PAGE}request/export/")
        run = PipelineRun.objects.get()
        assert answer.headers["Location"] == page_of(run)
        assert (run.step, run.state, run.asked_by) == (Step.EXPORT, RunState.WAITING, "ann")
        page = ann.get(PAGE).text
        assert f"{PAGE}request/export/" not in page
        assert f"{run} is WAITING" in page

    def test_a_running_step_cannot_be_started_twice(self, ann: Client) -> None:
        ann.post(f"{PAGE}request/verify/")
        run = PipelineRun.objects.get()
        answer = ann.post(f"{PAGE}request/verify/", follow=True)
        assert "Not started" in answer.text
        assert answer.redirect_chain[-1][0] == page_of(run)
        assert PipelineRun.objects.count() == 1

    @pytest.mark.parametrize("step", ["replay", "report", "nonsense"])
    def test_a_step_with_required_options_has_no_button(self, ann: Client, step: str) -> None:
        assert ann.post(f"{PAGE}request/{step}/").status_code == 404

    def test_progress_refreshes_until_the_run_has_ended(self, ann: Client) -> None:
        run = history_rows.run(
            state=RunState.RUNNING, doing="exporting 2026-11-22", done=500, count=2_000
        )
        part = refresh(ann, f"{PAGE}{run.pk}/change/", "run")
        assert "Exporting 2026-11-22" in part.text
        assert 'value="0.2500" max="1"' in part.text
        assert "hx-get" in part.text
        assert "<html" not in part.text
        PipelineRun.objects.filter(pk=run.pk).update(state=RunState.DONE, ended_at=timezone.now())
        assert "hx-get" not in refresh(ann, f"{PAGE}{run.pk}/change/", "run").text

    def test_a_waiting_run_is_stopped_at_once(self, ann: Client) -> None:
        run = history_rows.run(state=RunState.WAITING)
        assert (
            "The run is stopping"
            in ann.post(f"{PAGE}{run.pk}/stop/", {"next": PAGE}, follow=True).text
        )
        run.refresh_from_db()
        assert run.state == RunState.CANCELLED
        assert (
            "Nothing was done"
            in ann.post(f"{PAGE}{run.pk}/stop/", {"next": PAGE}, follow=True).text
        )

    def test_a_running_run_gets_the_request_to_stop(self, ann: Client) -> None:
        run = history_rows.run(state=RunState.RUNNING)
        assert f"{PAGE}{run.pk}/stop/" in ann.get(page_of(run)).text
        ann.post(f"{PAGE}{run.pk}/stop/")
        page = ann.get(page_of(run)).text
        assert "Stopping" in page
        assert f"{PAGE}{run.pk}/stop/" not in page

    def test_a_failed_run_shows_the_reason_and_the_next_step(self, ann: Client) -> None:
        run = history_rows.run(
            state=RunState.FAILED, error="No space left on <device>.", log="10:00:00 exporting\n"
        )
        page = ann.get(page_of(run)).text
        assert "No space left on &lt;device&gt;." in page
        assert "it continues where it stopped" in page
        assert "10:00:00 exporting" in page
        assert "No space left" in ann.get(PAGE).text

    def test_a_result_is_shown_in_words(self, ann: Client) -> None:
        result = {
            "rows": {"messages": 12_000},
            "until": "2026-01-15T10:00:00+00:00",
            "is_complete": True,
        }
        page = ann.get(page_of(history_rows.run(result=result, done=500))).text
        assert "<dt>Rows of messages</dt><dd>12,000</dd>" in page
        assert "2026-01-15 10:00:00 UTC" in page
        assert "<dd>10 s</dd>" in page
        assert ">50</dd>" in page

    def test_readers_start_and_stop_nothing(self, auditor: Client) -> None:
        run = history_rows.run(state=RunState.RUNNING)
        assert "request/" not in auditor.get(PAGE).text
        assert f"{PAGE}{run.pk}/stop/" not in auditor.get(page_of(run)).text
        assert auditor.post(f"{PAGE}{run.pk}/stop/").status_code == 403
        assert auditor.post(f"{PAGE}request/export/").status_code == 403


class TestVerdicts:
    def test_broken_here_names_the_rows(self, ann: Client) -> None:
        there = factories.delivery()
        run = history_rows.verified()
        Finding.objects.filter(run=run).update(delivery_id=there.pk, message_id=there.message_id)
        page = ann.get(page_of(run)).text
        assert "Broken here" in page
        assert "12 made INACTIVE meanwhile" in page
        assert "3,100,000" in page
        assert f"/admin/delivery/delivery/{there.pk}/change/" in page
        assert f"/admin/delivery/message/{there.message_id}/change/" in page
        assert "/admin/delivery/delivery/32/change/" not in page
        assert "delivery 32" in page

    def test_proven(self, ann: Client) -> None:
        run = history_rows.run(Step.VERIFY, result={"verdict": "proven", "checks": []})
        page = ann.get(page_of(run)).text
        assert "<strong>Proven</strong>" in page
        assert "Broken here" not in page

    def test_the_whole_history_can_be_checked_again(self, ann: Client) -> None:
        covers, proof = "the new rows since yesterday", {"snapshot": "5:5:"}
        result = {"verdict": "proven", "covers": covers, "proof": proof}
        page = ann.get(page_of(history_rows.run(Step.VERIFY, result=result))).text
        assert covers in page
        assert "5:5:" not in page
        for wanted in ({}, {"whole": "yes"}):
            ann.post("/admin/delivery/pipelinerun/request/verify/", wanted)
            PipelineRun.objects.filter(state=RunState.WAITING).update(
                state=RunState.DONE, ended_at=timezone.now()
            )
        newest = PipelineRun.objects.values_list("options", flat=True).order_by("-id")
        assert list(newest[:2]) == [{"whole": True}, {}]

    def test_an_unfinished_run_has_no_verdict(self, ann: Client) -> None:
        run = history_rows.run(Step.VERIFY, RunState.FAILED)
        page = ann.get(page_of(run)).text
        assert "Proven" not in page
        assert "Broken here" not in page

    def test_findings_are_listed_by_run_and_kind(self, ann: Client) -> None:
        first, second = history_rows.verified(), history_rows.verified()
        page = ann.get("/admin/delivery/finding/", {"run": str(first.pk), "kind": "ORDER"}).text
        assert str(first) in page
        assert str(second) not in page
        assert "No findings found" in ann.get("/admin/delivery/finding/", {"run": "x"}).text
        finding = second.findings.get()
        answer = ann.get(f"/admin/delivery/finding/{finding.pk}/change/")
        assert answer.headers["Location"] == page_of(second)


class TestReports:
    def test_an_auditor_requests_one_and_downloads_its_file(self, auditor: Client) -> None:
        assert f"{PAGE}report/" in auditor.get(PAGE).text
        answer = auditor.post(f"{PAGE}report/", WANTED | {"status": "REJECTED"})
        run = PipelineRun.objects.get()
        assert answer.headers["Location"] == page_of(run)
        options = {name: run.options[name] for name in ("since", "until", "format", "status")}
        assert options == {
            "since": "2026-01-01T00:00:00+00:00",
            "until": "2026-02-01T00:00:00+00:00",
            "format": "csv",
            "status": "REJECTED",
        }
        written = history_rows.reported()
        assert f"{PAGE}{written.pk}/file/" in auditor.get(page_of(written)).text
        file = auditor.get(f"{PAGE}{written.pk}/file/")
        assert file.getvalue() == b"delivery,status\r\n1,DELIVERED\r\n"
        assert file.headers["Content-Disposition"].startswith("attachment;")
        taken = ConfigurationChange.objects.get(action="downloaded")
        assert (taken.actor, taken.object_name) == ("audrey", str(written))

    def test_may_be_stopped_by_the_requester_but_by_no_other_reader(self, auditor: Client) -> None:
        auditor.post(f"{PAGE}report/", WANTED)
        run = PipelineRun.objects.get()
        assert f"{PAGE}{run.pk}/stop/" in auditor.get(page_of(run)).text
        other = signed_in("otto", "Auditors")
        assert other.post(f"{PAGE}{run.pk}/stop/").status_code == 403
        auditor.post(f"{PAGE}{run.pk}/stop/")
        run.refresh_from_db()
        assert run.state == RunState.CANCELLED

    def test_with_bodies_need_the_right_to_see_payloads(self, auditor: Client) -> None:
        Group.objects.get(name="Auditors").permissions.remove(
            Permission.objects.get(codename="view_payload")
        )
        page = auditor.get(f"{PAGE}report/").text
        assert "It has no bodies" in page
        assert "with_bodies" not in page
        options = {"with_bodies": "on", "filter": "$$->'Body'->>'secret' = '1'"}
        auditor.post(f"{PAGE}report/", WANTED | options)
        assert PipelineRun.objects.get().options.keys() == {"since", "until", "format", "to"}
        with_bodies = history_rows.reported()
        PipelineRun.objects.filter(pk=with_bodies.pk).update(options={"with_bodies": True})
        assert f"{PAGE}{with_bodies.pk}/file/" not in auditor.get(page_of(with_bodies)).text
        assert auditor.get(f"{PAGE}{with_bodies.pk}/file/").status_code == 403

    @pytest.mark.parametrize("path", ["/etc/passwd", "../secret-key", "", "nothing.csv", "."])
    def test_no_other_file_is_answered(self, auditor: Client, path: str) -> None:
        run = history_rows.reported()
        PipelineRun.objects.filter(pk=run.pk).update(result={"path": path})
        assert auditor.get(f"{PAGE}{run.pk}/file/").status_code == 404

    def test_only_a_finished_report_has_a_file(self, ann: Client) -> None:
        for run in (history_rows.run(Step.REPORT, RunState.RUNNING), history_rows.run(Step.EXPORT)):
            assert ann.get(f"{PAGE}{run.pk}/file/").status_code == 404

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"filter": "$$->'Body' ="}, "line 1"),
            ({"until": "2025-01-01T00:00"}, "must be after"),
            ({"since": ""}, "This field is required"),
            ({"format": "xlsx"}, "not one of the available choices"),
        ],
    )
    def test_errors_are_shown_at_their_field(
        self, ann: Client, options: dict[str, str], said: str
    ) -> None:
        assert said in ann.post(f"{PAGE}report/", WANTED | options).text
        assert not PipelineRun.objects.exists()


class TestSchedules:
    URL = "/admin/delivery/pipelineschedule/EXPORT/change/"

    def test_are_changed_by_administrators_and_recorded(self, ann: Client) -> None:
        next_at = (timezone.now() + timedelta(hours=3)).replace(microsecond=0)
        given = {"every_minutes": "15", "is_on": "on", "next_at": f"{next_at:%Y-%m-%dT%H:%M:%S}"}
        assert ann.post(self.URL, given).status_code == 302
        schedule = PipelineSchedule.objects.get(step=Step.EXPORT)
        assert (schedule.every_minutes, schedule.is_on, schedule.next_at) == (15, True, next_at)
        change = ConfigurationChange.objects.get()
        assert (change.object_type, (change.after or {})["every_minutes"]) == (
            "pipeline schedule",
            15,
        )
        assert "every 15 minutes" in ann.get(PAGE).text

    def test_an_interval_of_zero_is_refused(self, ann: Client) -> None:
        given = {"every_minutes": "0", "is_on": "on", "next_at": "2026-01-01T00:00:00"}
        assert "greater than or equal to 1" in ann.post(self.URL, given).text

    def test_are_only_read_by_others(self, auditor: Client) -> None:
        assert auditor.get(self.URL).status_code == 200
        assert auditor.post(self.URL, {"every_minutes": "1"}).status_code == 403
