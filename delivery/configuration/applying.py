"""Planning and applying documents of configuration in this installation: its networks, its senders, its backlogs."""

from typing import Any

from django.conf import settings

from delivery.lifecycle import wake
from delivery.support import toggle
from subscriptions.configuration import apply as applied
from subscriptions.configuration.document import checked
from subscriptions.configuration.draft import drift
from subscriptions.configuration.plan import Plan, Wanted
from subscriptions.configuration.secrets import Lookup
from subscriptions.models import Subscription, SubscriptionStatus


def wanted(content: Any, *, lookup: Lookup, prune: bool = False) -> Wanted:
    """Raise RefusedDocumentError for what is no document."""
    return Wanted(document=checked(content), lookup=lookup, prune=prune)


def plan_document(document: Wanted) -> Plan:
    """Raise RefusedDocumentError with all that is wrong."""
    return applied.plan(document, allowed_networks=settings.ENVIRONMENT.allowed_networks)


def drift_of(document: Wanted) -> Plan:
    """Return what would have to be done so that the installation is as the document says, also what cannot be."""
    found = drift(document)
    found.refuse_faults()
    return found


def apply_document(document: Wanted, *, digest: str, actor: str) -> Plan:
    """Raise RefusedDocumentError, or PlanChangedError when this is not the plan of that digest; nothing is done then.

    What a subscription held that becomes ACTIVE is delivered.
    """

    def set_status(subscription: Subscription, status: str) -> None:
        if status == SubscriptionStatus.INACTIVE:
            toggle.deactivate(subscription, actor=actor)
        elif status == SubscriptionStatus.HELD:
            toggle.hold(subscription, actor=actor)
        else:
            toggle.activate(subscription, backlog="deliver", actor=actor)

    applying = applied.Applying(
        digest=digest,
        actor=actor,
        set_status=set_status,
        tell=wake.changed,
        allowed_networks=settings.ENVIRONMENT.allowed_networks,
    )
    return applied.apply(document, applying)
