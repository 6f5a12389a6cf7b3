"""Actions, found by a verb: the results lead to the page where it is confirmed.

Nothing is changed by the search field itself.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.db.models import Model
from django.urls import reverse

from delivery.console.omnibox.hits import (
    HitSection,
    OmniboxHit,
    add_address,
    first_by_likeness,
    may_add,
    may_view,
    page_address,
)
from delivery.console.omnibox.objects import named_subscriptions
from delivery.console.shared.rights import may_hold_all, may_publish, may_toggle
from delivery.models import BuiltInReceiver, BulkVerb, Replay, Resubmission
from subscriptions.models import (
    EventType,
    Kind,
    Policy,
    Publisher,
    Subscriber,
    Subscription,
)
from subscriptions.values.names import RESERVED_PREFIX

SHOWN = 5
_FEWEST_LETTERS = 2
_BULK_WORDS = re.compile(r"\b(all|failed|waiting|open|deliveries|of|for|the)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Verb:
    """A word beginning an action; `hits` gets the words after it.

    `named` are the kinds of objects whose names the hits have.
    """

    words: tuple[str, ...]
    may: Callable[[User], bool]
    hits: Callable[[str, str], list[OmniboxHit]]
    named: tuple[type[Model], ...] = ()

    def is_for(self, user: User) -> bool:
        return self.may(user) and all(may_view(user, model) for model in self.named)


def actions_in(text: str, user: User) -> Iterator[HitSection]:
    """Yield the actions begun by the text, of those allowed to the user."""
    word, _, rest = text.strip().partition(" ")
    if len(word) < _FEWEST_LETTERS:
        return
    hits = [
        hit
        for verb in _VERBS
        for name in verb.words
        if name.startswith(word.casefold()) and verb.is_for(user)
        for hit in verb.hits(name, rest.strip())
    ]
    hits += _creations(word, rest.strip(), user)
    if hits:
        yield HitSection("Actions", hits)


def _publish(_verb: str, rest: str) -> list[OmniboxHit]:
    rows = EventType.objects.exclude(name__startswith=RESERVED_PREFIX).only("name")
    found = (
        first_by_likeness(rows, "name", rest, count=SHOWN)
        if rest
        else list(rows.order_by("name")[:SHOWN])
    )
    return [
        OmniboxHit(
            f"Publish a message of {row.name}", "", page_address(EventType, row.pk, "publish")
        )
        for row in found
    ]


def _toggle(verb: str, rest: str) -> list[OmniboxHit]:
    """Return the status pages of the subscriptions and subscribers of the name: their buttons."""
    if not rest:
        return []
    title = f"{verb.capitalize()} {{}} …"
    subscriptions = first_by_likeness(named_subscriptions(), "full", rest, count=SHOWN)
    subscribers = first_by_likeness(Subscriber.objects.only("name"), "name", rest, count=SHOWN)
    return [
        OmniboxHit(title.format(row.full), "subscription", _status_page(Subscription, row.pk))
        for row in subscriptions
    ] + [
        OmniboxHit(title.format(row.name), "subscriber", _status_page(Subscriber, row.pk))
        for row in subscribers
    ]


def _hold_all(verb: str, rest: str) -> list[OmniboxHit]:
    if rest and not "all sending".startswith(rest.casefold()):
        return []
    return [OmniboxHit(f"{verb.capitalize()} all sending …", "", reverse("admin:sending"))]


def _lane(verb: str, rest: str) -> list[OmniboxHit]:
    rows = Subscriber.objects.only("name")
    found = first_by_likeness(rows, "name", rest, count=SHOWN) if rest else []
    return [
        OmniboxHit(f"{verb.capitalize()} {row.name} …", "lane", _status_page(Subscriber, row.pk))
        for row in found
    ]


def _resubmit(_verb: str, rest: str) -> list[OmniboxHit]:
    return _bulk("Resubmit failed deliveries", rest, [])


def _cancel(_verb: str, rest: str) -> list[OmniboxHit]:
    return _bulk("Cancel waiting deliveries", rest, [("verb", BulkVerb.CANCEL.value)])


def _bulk(title: str, rest: str, parameters: list[tuple[str, str]]) -> list[OmniboxHit]:
    """Return the pages counting the deliveries first, of a subscriber or a subscription."""
    name = " ".join(_BULK_WORDS.sub(" ", rest).split())
    address = f"{add_address(Resubmission)}?{{}}"
    if not name:
        return [OmniboxHit(f"{title} …", "you see the count first", _with(address, parameters))]
    subscribers = first_by_likeness(Subscriber.objects.only("name"), "name", name, count=SHOWN)
    subscriptions = first_by_likeness(named_subscriptions(), "full", name, count=SHOWN)
    named = [("subscriber", row.name) for row in subscribers]
    named += [("subscription", row.full) for row in subscriptions]
    return [
        OmniboxHit(
            f"{title} of {parameter[1]} …",
            f"{parameter[0]}; count first",
            _with(address, [*parameters, parameter]),
        )
        for parameter in named
    ]


def _replay(_verb: str, rest: str) -> list[OmniboxHit]:
    if not rest:
        return []
    rows = named_subscriptions().exclude(event_type__kind=Kind.SYNC)
    found = first_by_likeness(rows, "full", rest.removeprefix("to "), count=SHOWN)
    address = f"{add_address(Replay)}?{{}}"
    return [
        OmniboxHit(
            f"Replay messages to {row.full} …",
            "you see the count first",
            _with(address, [("subscription", str(row.pk))]),
        )
        for row in found
    ]


def _with(address: str, parameters: list[tuple[str, str]]) -> str:
    return address.format(urlencode(parameters)).rstrip("?")


def _status_page(model: type[Model], pk: int) -> str:
    return page_address(model, pk, "status")


def _report(_verb: str, _rest: str) -> list[OmniboxHit]:
    return [
        OmniboxHit("New report …", "CSV or Parquet", reverse("admin:delivery_pipelinerun_report"))
    ]


_RECEIVING: tuple[type[Model], ...] = (Subscriber, Subscription)
_VERBS = (
    _Verb(("publish", "send"), may_publish, _publish, (EventType,)),
    _Verb(("hold", "release", "pause"), may_hold_all, _hold_all),
    _Verb(("hold", "release", "activate", "deactivate", "pause"), may_toggle, _toggle, _RECEIVING),
    _Verb(
        ("retry", "resume", "skip"),
        lambda user: user.has_perm("delivery.change_lane"),
        _lane,
        (Subscriber,),
    ),
    _Verb(("resubmit",), lambda user: may_add(user, Resubmission), _resubmit, _RECEIVING),
    _Verb(("cancel",), lambda user: may_add(user, Resubmission), _cancel, _RECEIVING),
    _Verb(("replay",), lambda user: may_add(user, Replay), _replay, (Subscription,)),
    _Verb(("report",), lambda user: user.has_perm("delivery.make_report"), _report),
)
_CREATED: tuple[type[Model], ...] = (
    Subscription,
    Subscriber,
    EventType,
    Publisher,
    Policy,
    BuiltInReceiver,
    Replay,
)
_CREATING = ("new", "create", "add")


def _creations(word: str, rest: str, user: User) -> list[OmniboxHit]:
    if not any(beginning.startswith(word.casefold()) for beginning in _CREATING):
        return []
    return [
        OmniboxHit(f"New {model._meta.verbose_name}", "", add_address(model))
        for model in _CREATED
        if may_add(user, model) and rest.casefold() in str(model._meta.verbose_name)
    ]
