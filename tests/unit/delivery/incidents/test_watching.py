"""An incident opens once its cause has lasted, closes once it is gone, each announced once."""

from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from delivery.incidents import actions
from delivery.incidents.announcements import incident_url
from delivery.incidents.facts import cause_of, read_facts, subject_of
from delivery.models import Incident, JournalEntry, Lane, LaneState, Status
from subscriptions.models import EventType
from tests.support import factories
from tests.unit.delivery.incidents.watched import (
    block,
    fail,
    pass_time,
    reported,
    rule,
    turn,
    unblock,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("any_disk")]


def test_a_lane_blocked_for_long_is_one_incident_announced_once() -> None:
    head = factories.delivery()
    lane = block(head)
    for _ in range(3):
        turn()
    (body,) = reported("Opened")
    incident = Incident.objects.get()
    sample = EventType.objects.get(name="Inturn.Incident.Opened").sample or {}
    assert body.keys() == sample.keys()
    name = lane.subscriber and lane.subscriber.name
    assert (body["subject"], body["cause"]) == (f"{name} is BLOCKED", "500: oops")
    assert (body["message"], body["waiting"]) == (head.message.public_id, 1)
    assert body["link"] == incident_url(incident)
    assert JournalEntry.objects.filter(kind="INCIDENT", lane_id=lane.pk).count() == 1


def test_a_lane_blocked_for_a_moment_is_watched_only() -> None:
    lane = block(factories.delivery(), minutes=1)
    turn()
    assert Incident.objects.get().state == "WATCHED"
    unblock(lane)
    turn()
    pass_time(Incident.objects.get(), 61)
    turn()
    assert not Incident.objects.exists()
    assert reported("Opened") == []


@pytest.mark.parametrize("state", [LaneState.BLOCKED, LaneState.SUSPENDED])
def test_a_lane_that_moves_at_the_moment_is_named_by_what_stopped_it(state: LaneState) -> None:
    head = factories.delivery(reason="500: oops")
    lane = block(head)
    Lane.objects.filter(pk=lane.pk).update(state=state)
    turn()
    unblock(lane)
    incident = Incident.objects.get()
    facts = read_facts([incident])[incident.pk]
    assert subject_of(incident, facts) == f"{facts.lane} is {state}"
    assert cause_of(incident, facts) == "500: oops"


def test_it_closes_when_the_cause_has_been_gone_for_the_quiet_time() -> None:
    lane = block(factories.delivery())
    turn()
    unblock(lane)
    turn()
    assert reported("Closed") == []
    pass_time(Incident.objects.get(), 61)
    turn()
    turn()
    (body,) = reported("Closed")
    assert body["lasted_seconds"] == pytest.approx(13 * 60 + 61, abs=5)
    assert Incident.objects.get().state == "CLOSED"


def test_a_flapping_endpoint_is_one_incident() -> None:
    head = factories.delivery()
    rule("LANE", after_seconds=120)
    for _ in range(30):
        lane = block(head, minutes=0)
        turn(is_thorough=False)
        pass_time(Incident.objects.get(), 20)
        unblock(lane)
        turn(is_thorough=False)
        pass_time(Incident.objects.get(), 20)
    assert len(reported("Opened")) == 1
    assert reported("Closed") == []
    assert Incident.objects.count() == 1


def test_a_cause_that_returns_after_the_quiet_time_is_another_incident() -> None:
    head = factories.delivery()
    for _ in range(2):
        lane = block(head)
        turn()
        unblock(lane)
        turn()
        pass_time(Incident.objects.latest("id"), 61)
        turn()
    assert (len(reported("Opened")), len(reported("Closed"))) == (2, 2)


def test_failures_are_one_incident_for_each_subscription_and_cause() -> None:
    first, another = factories.subscription(), factories.subscription()
    rows = [fail(subscription=first) for _ in range(3)]
    fail(subscription=another)
    turn()
    assert len(reported("Opened")) == 2
    incident = Incident.objects.get(subscription_id=first.pk)
    assert (incident.count, incident.cause) == (3, "404")
    assert {row.delivery_id for row in incident.failed.all()} == {row.pk for row in rows}


def test_failures_stay_open_until_a_delivery_succeeds_again() -> None:
    of = factories.subscription()
    fail(subscription=of)
    turn()
    incident = Incident.objects.get()
    pass_time(incident, 3600)
    turn()
    incident.refresh_from_db()
    assert incident.state == "OPEN"
    factories.delivery(Status.DELIVERED, subscription=of, settled_at=timezone.now())
    turn()
    incident.refresh_from_db()
    assert incident.state == "CLOSED"


def test_failures_below_the_bound_are_forgotten_after_the_quiet_time() -> None:
    rule("FAILURES", bound=2)
    fail()
    turn()
    pass_time(Incident.objects.get(), 601)
    turn()
    assert not Incident.objects.exists()
    connection.check_constraints()


def test_deliveries_in_doubt_are_one_incident_of_their_subscription() -> None:
    of = factories.subscription()
    for _ in range(2):
        settled_at = timezone.now() - timedelta(minutes=3)
        factories.delivery(Status.IN_DOUBT, subscription=of, settled_at=settled_at)
    turn()
    (body,) = reported("Opened")
    assert (body["kind"], body["count"]) == ("IN_DOUBT", 2)


def test_nothing_is_published_about_messages_about_incidents() -> None:
    own = EventType.objects.get(name="Inturn.Incident.Opened")
    of = factories.subscription(event_type=own)
    message = factories.message(event_type=own)
    block(factories.delivery(subscription=of, message=message))
    turn()
    assert Incident.objects.get().state == "OPEN"
    assert [body for body in reported("Opened") if "incident" in body] == []


def test_a_rule_that_is_off_opens_nothing_and_ends_its_incidents() -> None:
    block(factories.delivery())
    turn()
    rule("LANE", is_on=False, quiet_seconds=0)
    turn()
    turn()
    assert Incident.objects.get().state == "CLOSED"
    rule("LANE", quiet_seconds=60)
    turn()
    assert Incident.objects.count() == 1


def test_actions_are_announced_and_worsening_is_announced_once() -> None:
    block(factories.delivery())
    turn()
    incident = Incident.objects.get()
    actions.acknowledge_incident(incident.pk, actor="sue", now=timezone.now())
    pass_time(incident, 3601)
    turn()
    turn()
    assert [(body["change"], body["by"]) for body in reported("Changed")] == [
        ("acknowledged", "sue"),
        ("severity", None),
    ]
    incident.refresh_from_db()
    assert incident.severity == "CRITICAL"
