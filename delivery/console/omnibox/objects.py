"""Objects found in the search field by an id, a name or an endpoint."""

import re
from collections.abc import Callable, Iterator
from typing import Any

from django.contrib.auth.models import User
from django.db.models import F, Model, QuerySet, Value
from django.db.models.functions import Concat

from delivery.console.archive.page import may_have_message
from delivery.console.omnibox.hits import (
    HitSection,
    OmniboxHit,
    first_by_likeness,
    may_view,
    page_address,
)
from delivery.console.shared.addresses import with_shown_addresses
from delivery.models import Delivery, Message, PipelineRun, Replay, Resubmission
from delivery.models.message import public_id
from subscriptions.models import (
    CommonScript,
    EventType,
    Policy,
    Publisher,
    Subscriber,
    Subscription,
)

SHOWN = 6
# Longer texts are no names.
LONGEST_NAME = 401
_ID = re.compile(
    r"(?:(?P<kind>msg|message|delivery|resubmission|cancellation|replay|run|export)[_ #]*)?"
    r"(?P<id>\d{1,18})\Z",
    re.IGNORECASE,
)
_KINDS: dict[str, type[Model]] = {
    "msg": Message,
    "message": Message,
    "delivery": Delivery,
    "resubmission": Resubmission,
    "cancellation": Resubmission,
    "replay": Replay,
    "run": PipelineRun,
    "export": PipelineRun,
}


def ids_in(text: str, user: User) -> Iterator[HitSection]:
    """Yield the rows with the id in the text; a bare number may be of several kinds."""
    found = _ID.match(text)
    if found is None:
        return
    kind, pk = (found["kind"] or "").lower(), int(found["id"])
    hits = []
    for model in [_KINDS[kind]] if kind else [Message, Delivery, Resubmission, Replay]:
        hits += _row(model, pk, user)
    if hits:
        yield HitSection("Ids", hits)


def _row(model: type[Model], pk: int, user: User) -> list[OmniboxHit]:
    if not may_view(user, model):
        return []
    is_there = model._default_manager.filter(pk=pk).exists()
    if model is Message and (is_there or may_have_message(pk)):
        # The page of a message removed by retention leads to the archive.
        detail = "message, with its deliveries" if is_there else "message in the archive, if any"
        return [OmniboxHit(public_id(pk), detail, page_address(model, pk))]
    if not is_there:
        return []
    title, detail = _DETAILS[model](pk)
    return [OmniboxHit(title, detail, page_address(model, pk))]


def _delivery(pk: int) -> tuple[str, str]:
    row = (
        Delivery.objects.select_related("subscription__subscriber")
        .only("status", "message_id", "subscription__name", "subscription__subscriber__name")
        .get(pk=pk)
    )
    return f"delivery {pk}", f"{row.status}, {public_id(row.message_id)} to {row.subscription}"


def _job(pk: int) -> tuple[str, str]:
    job = Resubmission.objects.get(pk=pk)
    return str(job), job.state


def _replay(pk: int) -> tuple[str, str]:
    return f"replay {pk}", Replay.objects.values_list("state", flat=True).get(pk=pk)


def _run(pk: int) -> tuple[str, str]:
    run = PipelineRun.objects.get(pk=pk)
    return f"{run.step} {pk}", run.state


_DETAILS: dict[type[Model], Callable[[int], tuple[str, str]]] = {
    Delivery: _delivery,
    Resubmission: _job,
    Replay: _replay,
    PipelineRun: _run,
}


def names_in(text: str, user: User) -> Iterator[HitSection]:
    """Yield the configured objects whose name contains the text, in any letter case."""
    if not text or len(text) > LONGEST_NAME or "\0" in text:
        return
    if may_view(user, Subscription):
        if hits := _subscriptions(text):
            yield HitSection("Subscriptions", hits)
        if hits := _endpoints(text, user):
            yield HitSection("Endpoints", hits)
    for model, title, page in (
        (Subscriber, "Subscribers", "status"),
        (EventType, "Event types", "change"),
        (Publisher, "Publishers", "change"),
        (Policy, "Policies", "change"),
        (CommonScript, "Common scripts", "change"),
    ):
        rows: QuerySet[Any] = model._default_manager.only("name")
        if may_view(user, model) and (found := first_by_likeness(rows, "name", text, count=SHOWN)):
            yield HitSection(
                title,
                [OmniboxHit(row.name, "", page_address(model, row.pk, page)) for row in found],
            )


def _subscriptions(text: str) -> list[OmniboxHit]:
    return [
        OmniboxHit(row.full, f"{row.status}, {row.event_type.name}", _status_page(row))
        for row in first_by_likeness(named_subscriptions(), "full", text, count=SHOWN)
    ]


def _endpoints(text: str, user: User) -> list[OmniboxHit]:
    if not set(text) & set(":/.") or len(text) < 4:
        return []
    rows = with_shown_addresses(named_subscriptions(), "endpoint", user=user)
    found = first_by_likeness(rows, "shown_address", text, count=SHOWN)
    return [OmniboxHit(row.shown_address, row.full, _status_page(row)) for row in found]


def named_subscriptions() -> QuerySet[Any]:
    """Return the subscriptions with their names as pages show them, in `full`."""
    full = Concat(F("subscriber__name"), Value("/"), F("name"))
    rows = Subscription.objects.select_related("subscriber", "event_type").annotate(full=full)
    return rows.only(
        "name", "status", "endpoint", "subscriber__name", "event_type__name"
    ).order_by()


def _status_page(row: Subscription) -> str:
    return page_address(Subscription, row.pk, "status")
