"""One row of each kind that the console shows, and digests that reveal changes."""

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Group, User
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.utils import timezone

from delivery.models import (
    ArchiveFile,
    BuiltInReceiver,
    Delivery,
    IncidentKind,
    JournalEntry,
    Lane,
    LaneState,
    PayloadView,
    ReplayState,
    Resubmission,
    RetentionRun,
    RunState,
    Step,
    UrlHealth,
    UrlState,
)
from delivery.states import Status
from subscriptions import sign_in
from subscriptions.models import (
    CommonScript,
    ConfigurationChange,
    Door,
    PublishId,
    SavedView,
    SignIn,
    Subscription,
)
from subscriptions.publish_ids import rotate_publish_id
from subscriptions.sign_in import Visitor
from tests.support import factories
from tests.unit.delivery.console import history_rows
from tests.unit.delivery.console.blocking import block
from tests.unit.delivery.console.history_rows import ARCHIVED, archived_message

# Tables written by viewing pages and signing in, for any user.
_WRITTEN_BY_LOOKING = {"delivery_payloadview", "subscriptions_signin"}


def make_everything() -> dict[str, dict[str, Any]]:
    """Create the rows, and return the arguments of the pages' addresses.

    They are by model, and by name for pages that need more.
    """
    subscription = factories.subscription()
    rejected = factories.delivery(Status.REJECTED, subscription=subscription)
    head = factories.delivery(subscription=subscription)
    lane = block(head)
    waiting = factories.delivery(subscription=factories.subscription("waiting"))
    publish_id, _ = rotate_publish_id(factories.publisher(), now=timezone.now())
    made = {
        "subscriptions_subscription": subscription.pk,
        "subscriptions_subscriber": subscription.subscriber_id,
        "subscriptions_eventtype": subscription.event_type_id,
        "subscriptions_publisher": publish_id.publisher_id,
        "subscriptions_policy": factories.policy("mine", is_built_in=False).pk,
        "subscriptions_commonscript": _common_script().pk,
        "subscriptions_apikey": factories.api_key()[0].pk,
        "subscriptions_configurationchange": _change().pk,
        "subscriptions_signin": _throttled().pk,
        "delivery_builtinreceiver": BuiltInReceiver.objects.create(name="mine").pk,
        "delivery_message": rejected.message_id,
        "delivery_delivery": rejected.pk,
        **_incidents(rejected),
        **_own(rejected),
        "delivery_lane": lane.pk,
        "delivery_journalentry": _journal_entry(lane).pk,
        "delivery_payloadview": _payload_view(rejected.message_id).pk,
        "delivery_resubmission": Resubmission.objects.create(
            filter={"status": ["FAILED"]}, actor="ann", count=9
        ).pk,
        "delivery_retentionrun": RetentionRun.objects.create().pk,
        "delivery_urlhealth": quote(_url_health().pk),
        **_history(subscription),
        **_people(),
    }
    arguments: dict[str, dict[str, Any]] = {model: {"object_id": pk} for model, pk in made.items()}
    suspended = Lane.objects.get(subscriber=waiting.subscription.subscriber)
    Lane.objects.filter(pk=suspended.pk).update(state=LaneState.SUSPENDED, delivery_id=waiting.pk)
    return arguments | {
        "auth_user_password_change": {"id": made["auth_user"]},
        **_switched(made["delivery_builtinreceiver"], made["delivery_incident"]),
        **_rescued(head, lane=lane, suspended=suspended),
        **_toggled(subscription),
        **_ended(subscription, publish_id),
        **_asked_of_the_history(subscription),
        "app_list": {"app_label": "delivery"},
        "view_on_site": {
            "content_type_id": ContentType.objects.get_for_model(User).pk,
            "object_id": 1,
        },
    }


def _people() -> dict[str, Any]:
    uma = User.objects.create_user("uma", is_staff=True)
    view = SavedView.objects.create(
        owner=uma,
        list_name="delivery.delivery",
        name="Failed",
        query="tab=failed",
        is_shared=True,
    )
    return {
        "auth_user": uma.pk,
        "auth_group": Group.objects.get(name="Auditors").pk,
        "saved_view": view.pk,
    }


def _rescued(head: Delivery, *, lane: Lane, suspended: Lane) -> dict[str, dict[str, Any]]:
    return {
        "delivery_delivery_cancel": {"object_id": head.pk},
        "delivery_lane_skip": {"object_id": lane.pk, "delivery_id": head.pk},
        "delivery_lane_resume": {"object_id": suspended.pk},
    }


def _incidents(failed: Delivery) -> dict[str, Any]:
    return {
        "delivery_incident": factories.incident(failed).pk,
        "delivery_incidentrule": IncidentKind.LANE,
    }


def _switched(receiver_id: int, incident_id: int) -> dict[str, dict[str, Any]]:
    return {
        "delivery_builtinreceiver_switch": {"object_id": receiver_id, "answer": "ERROR"},
        "delivery_incident_mute": {"object_id": incident_id, "hours": 1},
    }


def _own(delivery: Delivery) -> dict[str, int]:
    """Make everybody a developer of the message's publisher."""
    publisher = delivery.message.publisher
    assert publisher is not None
    publisher.developers.set(User.objects.all())
    return {"delivery_ownmessage": delivery.message_id, "delivery_owndelivery": delivery.pk}


def _ended(subscription: Subscription, publish_id: PublishId) -> dict[str, dict[str, Any]]:
    return {
        "subscriptions_subscription_end_secret": {
            "object_id": subscription.pk,
            "secret_id": subscription.secrets.get().pk,
        },
        "subscriptions_publisher_end_address": {
            "object_id": publish_id.publisher_id,
            "id": publish_id.pk,
        },
    }


def _toggled(subscription: Subscription) -> dict[str, dict[str, Any]]:
    cancelling, undoing = {"backlog": "cancel"}, {"made": "HELD", "to": "ACTIVE"}
    of_chosen = {
        f"subscriptions_{model}_restore_chosen": {"made": "HELD"}
        for model in ("subscription", "subscriber")
    }
    return of_chosen | {
        f"subscriptions_{model}_{verb}": {"object_id": object_id, **more}
        for model, object_id in (
            ("subscription", subscription.pk),
            ("subscriber", subscription.subscriber_id),
        )
        for verb, more in (("activate", cancelling), ("restore", undoing))
    }


def fingerprint() -> dict[str, str]:
    """Return each of Inturn's tables with a digest of its rows."""
    ours = [
        name
        for name in connection.introspection.table_names()
        if name.startswith(("delivery_", "subscriptions_", "auth_"))
        and name not in _WRITTEN_BY_LOOKING
    ]
    digest = "coalesce(md5(string_agg(t::text, '|' ORDER BY t::text)), '')"
    # The names are the database's own.
    parts = [
        f"SELECT '{name}', count(*) || ':' || {digest} FROM {name} t"  # noqa: S608
        for name in ours
    ]
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(parts))
        return dict(cursor.fetchall())


def _change() -> ConfigurationChange:
    return ConfigurationChange.objects.create(
        actor="ann",
        action="changed",
        object_type="policy",
        object_name="mine",
        before={"a": 1},
        after={"a": 2},
    )


def _throttled() -> SignIn:
    visitor = Visitor(door=Door.CONSOLE, username="uma", address="198.51.100.7")
    failures = [
        sign_in.begin_sign_in(visitor, now=timezone.now())
        for _ in range(sign_in.MOST_OF_ACCOUNT_FROM_ORIGIN)
    ]
    return failures[-1]


def _payload_view(message_id: int) -> PayloadView:
    now = timezone.now()
    return PayloadView.objects.create(
        actor="ann",
        message_id=message_id,
        hour=now - timedelta(hours=2),
        first_at=now - timedelta(hours=2),
        last_at=now - timedelta(hours=2),
        views=1,
    )


def _journal_entry(lane: Lane) -> JournalEntry:
    return JournalEntry.objects.create(kind="BLOCKED", text="It is.", lane_id=lane.pk)


def _common_script() -> CommonScript:
    return CommonScript.objects.create(name="dates", text="1;")


def _history(subscription: Subscription) -> dict[str, Any]:
    """Create the rows of the history's pages, and return the arguments of their addresses."""
    verified = history_rows.verified()
    archived_message(settings.ENVIRONMENT.history_url)
    return {
        "delivery_historyhour": history_rows.hour(history_rows.this_hour(), of=subscription).pk,
        "delivery_pipelinerun": verified.pk,
        "delivery_pipelineschedule": Step.EXPORT,
        "delivery_finding": verified.findings.get().pk,
        "delivery_replay": history_rows.replay(subscription=subscription).pk,
        "delivery_archivefile": ArchiveFile.objects.values_list("pk", flat=True).first(),
    }


def _asked_of_the_history(subscription: Subscription) -> dict[str, dict[str, Any]]:
    exporting = history_rows.run(Step.ROLLUP, RunState.RUNNING)
    failed = history_rows.replay(ReplayState.FAILED, subscription=subscription)
    return {
        "delivery_pipelinerun_request": {"step": "export"},
        "delivery_pipelinerun_stop": {"object_id": exporting.pk},
        "delivery_pipelinerun_file": {"object_id": history_rows.reported().pk},
        "delivery_replay_again": {"object_id": failed.pk},
        "delivery_archivefile_message": {"message_id": ARCHIVED},
        "delivery_archivefile_raw": {"message_id": ARCHIVED},
    }


def _url_health() -> UrlHealth:
    return UrlHealth.objects.create(
        url="https://receiver.example/hook", state=UrlState.FROZEN, since=timezone.now()
    )
