"""A suspended lane is resumed or skipped, and not retried; a disabled URL is released."""

from datetime import UTC, datetime
from urllib.parse import quote

import pytest
from django.utils import timezone

from delivery.models import Delivery, JournalEntry, JournalKind, Lane, UrlHealth
from delivery.states import LaneState, Status
from subscriptions.models import Scope
from subscriptions.values.shown_addresses import secret_address_key
from tests.support import factories
from tests.unit.delivery.api.client import Caller, caller, fields_of, refused

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
URL = "https://receiver.example/hook"


def suspended_lane(status: Status = Status.PENDING) -> tuple[Lane, Delivery]:
    top = factories.delivery(status, attempts=5)
    assert top.lane is not None
    Lane.objects.filter(pk=top.lane.pk).update(
        state=LaneState.SUSPENDED, reason="503", delivery_id=top.pk, since=NOON, failures=5
    )
    return Lane.objects.get(pk=top.lane.pk), top


def test_a_suspended_lane_shows_that_it_waits_for_a_person(manager: Caller) -> None:
    lane, top = suspended_lane()
    body = manager.get(f"lanes/{lane}").body
    assert (body["state"], body["delivery"], body["next_try_at"]) == ("SUSPENDED", top.pk, None)


def test_resuming_makes_it_due_with_all_its_attempts_again(manager: Caller) -> None:
    lane, top = suspended_lane()
    answer = manager.post(f"lanes/{lane}/resume")
    assert answer.status == 200, answer
    assert answer.body["state"] == "BLOCKED"
    lane.refresh_from_db()
    top.refresh_from_db()
    assert lane.next_try_at is not None
    assert lane.next_try_at <= timezone.now()
    assert lane.since > NOON
    assert (top.status, top.attempts, top.attempts_before) == (Status.PENDING, 5, 5)
    entry = JournalEntry.objects.get()
    assert (entry.kind, entry.lane_id, entry.delivery_id) == (JournalKind.RESUMED, lane.pk, top.pk)
    assert entry.actor


def test_a_lane_that_a_rejection_suspended_is_resumed_and_the_rejection_stays(
    manager: Caller,
) -> None:
    for verb in ("resume", "skip"):
        lane, top = suspended_lane(Status.REJECTED)
        assert manager.post(f"lanes/{lane}/{verb}").body["state"] == "BLOCKED"
        top.refresh_from_db()
        assert (top.status, top.attempts_before) == (Status.REJECTED, 0)
    assert {entry.kind for entry in JournalEntry.objects.all()} == {JournalKind.RESUMED}


def test_skipping_cancels_the_suspending_delivery_and_resumes(manager: Caller) -> None:
    lane, top = suspended_lane()
    assert manager.post(f"lanes/{lane}/skip").body["state"] == "BLOCKED"
    top.refresh_from_db()
    assert top.status == Status.CANCELLED
    assert JournalEntry.objects.filter(kind=JournalKind.SKIPPED).exists()


def test_retrying_a_suspended_lane_is_refused_with_resume(manager: Caller) -> None:
    lane, _ = suspended_lane()
    problem = refused(manager.post(f"lanes/{lane}/retry"), 409, "suspended")
    assert f"POST lanes/{lane}/resume" in problem["detail"]
    lane.refresh_from_db()
    assert lane.state == LaneState.SUSPENDED


def test_a_lane_that_is_not_suspended_cannot_be_resumed(manager: Caller) -> None:
    lane = factories.subscriber("crm").lane
    refused(manager.post("lanes/crm/resume"), 409, "not-suspended")
    Lane.objects.filter(pk=lane.pk).update(
        state=LaneState.BLOCKED, delivery_id=factories.delivery().pk
    )
    refused(manager.post("lanes/crm/resume"), 409, "not-suspended")
    refused(manager.post("lanes/crm/resume", {"why": "x"}), 400)
    refused(manager.post("lanes/none/resume"), 404)
    refused(caller(Scope.READ).post("lanes/crm/resume"), 403)


def stopped_url(url: str = URL, state: str = "FROZEN", **fields: object) -> UrlHealth:
    if state == "DISABLED":
        fields.setdefault("next_probe_at", NOON)
    return UrlHealth.objects.create(
        url=url,
        state=state,
        since=NOON,
        attempts=2100,
        failures=2050,
        failures_in_row=2001,
        **fields,
    )


class TestUrlHealth:
    def test_lists_urls_by_state_a_page_at_a_time(self, manager: Caller) -> None:
        for path, state in (("/c", "FROZEN"), ("/a", "ENABLED"), ("/b", "DISABLED")):
            stopped_url(f"https://receiver.example{path}", state, last_success_at=NOON)
        first = manager.get("url-health?limit=2").body
        assert [row["url"][-1] for row in first["results"]] == ["a", "b"]
        assert [row["url"][-1] for row in manager.get(first["next"]).body["results"]] == ["c"]
        (disabled,) = manager.get("url-health?state=DISABLED").body["results"]
        assert disabled == {
            "url": "https://receiver.example/b",
            "url_key": secret_address_key("https://receiver.example/b"),
            "state": "DISABLED",
            "since": "2026-05-04T12:00:00Z",
            "attempts": 2100,
            "failures": 2050,
            "failures_in_row": 2001,
            "last_success_at": "2026-05-04T12:00:00Z",
            "next_probe_at": "2026-05-04T12:00:00Z",
        }

    @pytest.mark.parametrize("state", ["FROZEN", "DISABLED"])
    def test_a_released_url_is_enabled_and_counts_from_zero(
        self, manager: Caller, state: str
    ) -> None:
        stopped_url(state=state, last_success_at=NOON)
        answer = manager.post("url-health/release", {"url": URL})
        assert answer.status == 200, answer
        assert answer.body["state"] == "ENABLED"
        assert answer.body["next_probe_at"] is None
        counters = [answer.body[name] for name in ("attempts", "failures", "failures_in_row")]
        assert counters == [0, 0, 0]
        assert answer.body["last_success_at"] == "2026-05-04T12:00:00Z"
        entry = JournalEntry.objects.get()
        assert (entry.kind, entry.text) == (
            JournalKind.ENABLED,
            f"{URL} was {state} and is released.",
        )
        assert entry.actor

    def test_a_masked_url_is_released_by_its_key(self, manager: Caller) -> None:
        url = "https://receiver.example/hook?token=SECRET"
        stopped_url(url, "FROZEN", last_success_at=NOON)
        (listed,) = caller(Scope.READ).get("url-health").body["results"]
        assert "SECRET" not in listed["url"]
        refused(manager.post("url-health/release", {"url": "0" * 64}), 404)
        answer = manager.post("url-health/release", {"url": listed["url_key"]})
        assert (answer.status, answer.body["url"]) == (200, url)

    @pytest.mark.parametrize("scope", [Scope.READ, Scope.MANAGE])
    def test_the_next_page_is_named_without_the_url(self, db: None, scope: Scope) -> None:
        for number in (1, 2, 3):
            url = f"https://receiver.example/hook?token=SECRET{number}"
            stopped_url(url, "FROZEN", last_success_at=NOON)
        reader, seen, page = caller(scope), [], "url-health?limit=1"
        while page:
            answer = reader.get(page).body
            seen += [listed["url_key"] for listed in answer["results"]]
            page = answer["next"]
            assert "SECRET" not in str(page)
        assert len(set(seen)) == 3

    def test_a_page_does_not_begin_at_a_typed_url(self, db: None) -> None:
        """By the answers, one could find out a masked token character by character."""
        stopped_url("https://receiver.example/?token=SECRET", "FROZEN", last_success_at=NOON)
        for after in ("https://receiver.example/?token=S", "receiver", "0" * 64):
            refused(caller(Scope.READ).get(f"url-health?after={quote(after)}"), 404, "not-found")

    def test_only_stopped_known_urls_can_be_released(self, manager: Caller) -> None:
        stopped_url(state="ENABLED")
        refused(manager.post("url-health/release", {"url": URL}), 409, "not-stopped")
        refused(manager.post("url-health/release", {"url": "https://elsewhere.example/"}), 404)
        assert fields_of(refused(manager.post("url-health/release", {}), 400)) == {"url"}
        assert fields_of(refused(manager.post("url-health/release", {"url": 1}), 400)) == {"url"}
        assert not JournalEntry.objects.exists()

    def test_to_read_needs_less_than_to_release(self, db: None) -> None:
        stopped_url()
        reader = caller(Scope.READ)
        assert reader.get("url-health").status == 200
        refused(reader.post("url-health/release", {"url": URL}), 403)
        refused(caller(Scope.PUBLISH).get("url-health"), 403)

    @pytest.mark.parametrize(("query", "field"), [("state=BROKEN", "state"), ("url=x", "url")])
    def test_a_wrong_selection_is_refused(self, manager: Caller, query: str, field: str) -> None:
        assert fields_of(refused(manager.get(f"url-health?{query}"), 400)) == {field}
