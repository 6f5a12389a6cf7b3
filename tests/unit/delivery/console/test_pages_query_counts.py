"""The queries of each list: pinned, and as many for two rows as for eight."""

from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.db import connection
from django.db.models import Model
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from delivery.models import (
    BuiltInReceiver,
    JournalEntry,
    PayloadView,
    ReceivedRequest,
    Resubmission,
    RetentionRun,
    UrlHealth,
)
from delivery.states import Status
from subscriptions.models import (
    CommonScript,
    ConfigurationChange,
    EventType,
    Policy,
    Publisher,
    SignIn,
    Subscriber,
)
from tests.support import factories
from tests.unit.delivery.console import history_rows

# Session and user are two of each. A new list fails until its count is here.
QUERIES = {
    "auth.group": 7,
    "auth.user": 8,
    "delivery.builtinreceiver": 5,
    "delivery.delivery": 7,
    "delivery.incident": 7,
    "delivery.incidentrule": 5,
    "delivery.journalentry": 7,
    "delivery.lane": 10,
    "delivery.message": 9,
    "delivery.ownmessage": 6,
    # With the four statements of its time limit.
    "delivery.owndelivery": 9,
    "delivery.payloadview": 4,
    "delivery.resubmission": 4,
    "delivery.retentionrun": 7,
    "delivery.archivefile": 7,
    "delivery.finding": 5,
    "delivery.historyhour": 9,
    "delivery.pipelinerun": 7,
    "delivery.pipelineschedule": 5,
    "delivery.replay": 5,
    "delivery.urlhealth": 7,
    "subscriptions.apikey": 6,
    "subscriptions.commonscript": 5,
    "subscriptions.configurationchange": 4,
    "subscriptions.eventtype": 7,
    "subscriptions.policy": 5,
    "subscriptions.publisher": 7,
    "subscriptions.signin": 7,
    "subscriptions.subscriber": 12,
    "subscriptions.subscription": 13,
}
FEW, MANY = 2, 8


def lists() -> dict[str, type[Model]]:
    return {model._meta.label_lower: model for model in admin.site._registry}


def make_rows() -> None:
    """Create a row of each list, with everything that its cells show."""
    factories.api_key()
    factories.publisher(all_event_types=False).event_types.add(factories.event_type())
    factories.policy()
    CommonScript.objects.create(name=factories.unique("common"), text="1;")
    group = Group.objects.create(name=factories.unique("role"))
    User.objects.create_user(factories.unique("user")).groups.add(group)
    delivery = factories.delivery(Status.REJECTED, reason="404 Not Found")
    for publisher in Publisher.objects.all():
        publisher.developers.set(User.objects.all())
    factories.delivery(message=delivery.message, subscription=factories.subscription(mode="PULL"))
    receiver = BuiltInReceiver.objects.create(name=factories.unique("receiver"))
    ReceivedRequest.objects.create(receiver=receiver, at=timezone.now(), headers=[], size=0)
    factories.incident(delivery)
    UrlHealth.objects.create(url=factories.unique("https://receiver.example/"))
    JournalEntry.objects.create(
        kind="SKIPPED",
        text="Skipped.",
        actor="ann",
        message_id=delivery.message_id,
        delivery_id=delivery.pk,
        subscription_id=delivery.subscription_id,
        lane_id=delivery.lane_id,
    )
    ConfigurationChange.objects.create(
        actor="ann",
        action="changed",
        object_type="policy",
        object_name="x",
        before={"a": 1},
        after={"a": 2},
    )
    Resubmission.objects.create(filter={"status": ["FAILED"]}, actor="ann", count=1)
    RetentionRun.objects.create(state="DONE", ended_at=timezone.now())
    now = timezone.now()
    PayloadView.objects.create(
        actor="ann", message_id=delivery.message_id, hour=now, first_at=now, last_at=now, views=1
    )
    SignIn.objects.create(kind="SIGNED_IN", username="ann")
    history_rows.make_one_of_each()


def queries_of(ann: Client, model: type[Model]) -> list[str]:
    address = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
    with CaptureQueriesContext(connection) as queries:
        answer = ann.get(address)
    assert answer.status_code == 200
    return [query["sql"] for query in queries]


def test_every_list_has_its_pin() -> None:
    assert set(QUERIES) == set(lists())


def test_a_list_costs_the_same_number_of_queries_however_many_rows_it_has(ann: Client) -> None:
    for count in (FEW, MANY - FEW):
        for _ in range(count):
            make_rows()
        asked = {name: queries_of(ann, model) for name, model in lists().items()}
        changed = {
            name: queries for name, queries in asked.items() if len(queries) != QUERIES.get(name)
        }
        reported = [
            f"{name}: {len(queries)}\n" + "\n".join(queries) for name, queries in changed.items()
        ]
        assert not changed, "\n\n".join(reported)


def test_the_number_of_pages_is_counted_without_the_subscriptions(ann: Client) -> None:
    make_rows()
    for model in (EventType, Policy, Subscriber):
        counts = [sql for sql in queries_of(ann, model) if sql.startswith("SELECT COUNT(*)")]
        assert counts
        assert not [sql for sql in counts if "subscriptions_subscription" in sql]


def test_no_list_was_counted_without_its_rows(ann: Client) -> None:
    before = {name: model._default_manager.count() for name, model in lists().items()}
    make_rows()
    after = {name: model._default_manager.count() for name, model in lists().items()}
    # There is a rule of each kind from the beginning, and no other.
    growing = after.keys() - {"delivery.incidentrule"}
    assert {name for name in growing if after[name] <= before[name]} == set()
