"""Replays by REST: requested, read, started and cancelled; refusals name the remedy."""

from datetime import timedelta

import pytest
from django.utils import timezone

from delivery.models import Archived, Replay
from subscriptions.models import Scope, Subscription
from tests.support import factories
from tests.unit.delivery.api.client import Caller, caller, refused
from tests.unit.delivery.support.replays.ready_replay import finish, ready, stored

SINCE = "2026-01-01T00:00:00Z"


@pytest.fixture
def subscription(db: None) -> Subscription:
    Archived.objects.create(pk=1, until=timezone.now() - timedelta(hours=1))
    return factories.subscription()


class TestReplays:
    def test_are_requested(self, manager: Caller, subscription: Subscription) -> None:
        fields = {
            "subscription": subscription.pk,
            "since": SINCE,
            "rate": 5,
            "filter": "$$->'Body'->'n' = 1",
        }
        answer = manager.post("replays", fields)
        assert answer.status == 201, answer
        assert answer.body["state"] == "SELECTING"
        assert (answer.body["since"], answer.body["rate"]) == (SINCE, 5.0)
        assert answer.body["event_types"] == [subscription.event_type.name]
        assert answer.body["subscriber"] == subscription.subscriber.name
        assert manager.get(f"replays/{answer.body['id']}").body == answer.body
        assert manager.get("replays").body["results"] == [answer.body]

    def test_are_started_and_show_their_progress(
        self, manager: Caller, subscription: Subscription
    ) -> None:
        replay = ready(subscription, [row.pk for row in stored(subscription.event_type, 2)])
        answer = manager.post(f"replays/{replay.pk}/start")
        assert (answer.status, answer.body["state"]) == (200, "RUNNING")
        refused(manager.post(f"replays/{replay.pk}/start"), 409, "not-ready")
        Replay.objects.update(due_at=timezone.now() - timedelta(seconds=1))
        replay.refresh_from_db()
        finish(replay)
        shown = manager.get(f"replays/{replay.pk}").body
        assert (shown["state"], shown["count"], shown["done"], shown["made"]) == ("DONE", 2, 2, 2)
        (first, _) = manager.get(f"deliveries?subscription={subscription.pk}").body["results"]
        assert first["replay"] == replay.pk
        refused(manager.post(f"replays/{replay.pk}/cancel"), 409, "ended")

    def test_are_cancelled(self, manager: Caller, subscription: Subscription) -> None:
        replay = ready(subscription, [1])
        answer = manager.post(f"replays/{replay.pk}/cancel")
        assert (answer.status, answer.body["state"]) == (200, "CANCELLED")

    def test_in_selection_cannot_be_started(
        self, manager: Caller, subscription: Subscription
    ) -> None:
        made = manager.post("replays", {"subscription": subscription.pk, "since": SINCE}).body
        problem = refused(manager.post(f"replays/{made['id']}/start"), 409, "not-ready")
        assert "when it is READY" in problem["detail"]

    def test_with_a_wrong_filter_are_refused_where_it_is_wrong(
        self, manager: Caller, subscription: Subscription
    ) -> None:
        fields = {"subscription": subscription.pk, "since": SINCE, "filter": "true ="}
        (error,) = refused(manager.post("replays", fields), 400, "invalid")["errors"]
        assert (error["field"], error["line"], error["column"]) == ("filter", 1, 7)

    def test_of_unarchived_time_are_refused(
        self, manager: Caller, subscription: Subscription
    ) -> None:
        until = (timezone.now() + timedelta(days=1)).isoformat()
        fields = {"subscription": subscription.pk, "since": SINCE, "until": until}
        (error,) = refused(manager.post("replays", fields), 400, "invalid")["errors"]
        assert error["field"] == "until"
        assert "run the export first" in error["detail"]

    @pytest.mark.parametrize("id", [0, 10**6, 2**63])
    def test_without_a_subscription_are_refused(
        self, manager: Caller, subscription: Subscription, id: int
    ) -> None:
        problem = refused(
            manager.post("replays", {"subscription": id, "since": SINCE}), 400, "invalid"
        )
        assert problem["errors"][0]["field"] == "subscription"

    def test_take_a_manager(self, manager: Caller, subscription: Subscription) -> None:
        replay = ready(subscription, [1])
        reader = caller(Scope.READ)
        assert reader.get(f"replays/{replay.pk}").status == 200
        for path in ("replays", f"replays/{replay.pk}/start", f"replays/{replay.pk}/cancel"):
            refused(reader.post(path, {}), 403, "wrong-scope")
        refused(manager.post("replays/1234567/start"), 404)
