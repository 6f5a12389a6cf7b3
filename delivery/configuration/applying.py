"""Planning and applying documents in this installation, with networks, senders and backlogs."""

from typing import Any

from django.conf import settings

from delivery.configuration.document import apply as applied
from delivery.configuration.document.document_json import check_entries
from delivery.configuration.document.draft import drift
from delivery.configuration.document.plan import ConfigurationRequest, Plan
from delivery.configuration.document.secrets import Lookup
from delivery.lifecycle import notifier
from delivery.support import toggle
from subscriptions.models import Subscriber, Subscription, SubscriptionStatus
from subscriptions.values.built_in_receivers import built_in_receivers


def checked_document(content: Any, *, lookup: Lookup, prune: bool = False) -> ConfigurationRequest:
    """Check the form of a document; raises RefusedDocumentError."""
    return ConfigurationRequest(document=check_entries(content), lookup=lookup, prune=prune)


def plan_document(document: ConfigurationRequest) -> Plan:
    """Return the plan; raises RefusedDocumentError with all faults."""
    return applied.plan_configuration(
        document,
        allowed_networks=settings.ENVIRONMENT.allowed_networks,
        built_in_receivers=built_in_receivers(settings.ENVIRONMENT.base_url),
    )


def drift_of(document: ConfigurationRequest) -> Plan:
    """Return all differences from the document, including inapplicable differences."""
    found = drift(document)
    found.refuse_faults()
    return found


def apply_document(document: ConfigurationRequest, *, digest: str, actor: str) -> Plan:
    """Apply the plan with this digest; newly ACTIVE subscriptions deliver their backlog.

    Raises RefusedDocumentError, or PlanChangedError if the plan has another digest; then nothing is
    done.
    """

    def set_status(owner: Subscription | Subscriber, status: str) -> None:
        if status == SubscriptionStatus.INACTIVE:
            toggle.deactivate_owner(owner, actor=actor)
        elif status == SubscriptionStatus.HELD:
            toggle.hold_owner(owner, actor=actor)
        elif isinstance(owner, Subscription) and status == SubscriptionStatus.SHADOW:
            toggle.shadow_subscription(owner, actor=actor)
        else:
            toggle.activate_owner(owner, backlog="deliver", actor=actor)

    applying = applied.Applying(
        digest=digest,
        actor=actor,
        set_status=set_status,
        notify=notifier.notify_of_change,
        allowed_networks=settings.ENVIRONMENT.allowed_networks,
        built_in_receivers=built_in_receivers(settings.ENVIRONMENT.base_url),
    )
    return applied.apply_configuration(document, applying)
