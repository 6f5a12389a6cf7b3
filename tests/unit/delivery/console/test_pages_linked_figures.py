"""A figure that is a link equals the number of rows in the list that it leads to, on every page.

The test visits all pages that are read, and follows each link whose text has a number and whose
target is a list. So a new link is found without being named here.
"""

import re
from collections.abc import Iterator
from datetime import timedelta
from html.parser import HTMLParser
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import Resolver404, resolve, reverse
from django.utils import timezone

from delivery.models import Lane, LaneKind, UrlHealth, UrlState
from delivery.states import Status
from subscriptions.models import EventType, Kind, Mode, Subscriber, Subscription
from tests.support import factories
from tests.unit.delivery.console.blocking import suspend
from tests.unit.delivery.console.everything import make_everything
from tests.unit.delivery.console.matrix import ADMINISTRATOR, MATRIX, SUPPORT, address_of

pytestmark = pytest.mark.django_db

FIGURE = re.compile(r"(?<![\w.:/-])(\d[\d,]*)(?![\w.:/%-])")
# The parts of a tile that say more; nor is a time a figure.
NOTE = "inturn-note"


class _Links(HTMLParser):
    """Collects the links of a page, each with its text."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str]] = []
        self._address, self._text, self._notes = "", "", 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "a":
            self._address, self._text, self._notes = given.get("href") or "", "", 0
        elif self._notes or tag == "time" or NOTE in (given.get("class") or ""):
            self._notes += 1

    def handle_endtag(self, tag: str) -> None:
        if tag == "a" and self._address:
            self.found.append((self._address, " ".join(self._text.split())))
            self._address = ""
        elif self._notes:
            self._notes -= 1

    def handle_data(self, data: str) -> None:
        if self._address and not self._notes:
            self._text += data


def links_with_figures(page: str) -> Iterator[tuple[str, int]]:
    links = _Links()
    links.feed(page)
    for address, text in links.found:
        figure = FIGURE.search(text)
        if figure and _is_list(address):
            yield address, int(figure[1].replace(",", ""))


def _is_list(address: str) -> bool:
    path = address.partition("?")[0]
    try:
        return (resolve(path).url_name or "").endswith("_changelist")
    except Resolver404:
        return False


def make_more() -> None:
    """Create rows of further kinds, several of each, so that no figure is right by chance."""
    now = timezone.now()
    orders = factories.subscription("orders")
    for status, count in (
        (Status.REJECTED, 4),
        (Status.FAILED, 3),
        (Status.IN_DOUBT, 2),
        (Status.DELIVERED, 5),
        (Status.PENDING, 3),
    ):
        for _ in range(count):
            factories.delivery(status, subscription=orders)
    factories.delivery(
        subscription=orders,
        lane=Lane.objects.get(kind=LaneKind.RETRY),
        attempts=1,
        next_attempt_at=now + timedelta(hours=1),
    )
    box = factories.subscription("box", mode=Mode.PULL)
    for status in (Status.PENDING, Status.IN_FLIGHT, Status.IN_FLIGHT):
        factories.delivery(status, subscription=box)
    factories.subscription(status="SHADOW")
    held = factories.subscription(status="HELD")
    factories.delivery(subscription=held)
    inactive = factories.subscription(status="INACTIVE", subscriber=held.subscriber)
    factories.delivery(subscription=inactive)
    suspend(factories.delivery())
    group = factories.event_type(kind=Kind.QUEUE)
    for _ in range(2):
        worker = factories.subscription(event_type=group)
        queue = Lane.objects.get(kind=LaneKind.QUEUE, number=0)
        factories.endpoint_down(factories.delivery(subscription=worker, lane=queue, queue_group=0))
    policy = factories.policy("workfront-48h")
    frozen = factories.subscription(endpoint="https://frozen.example/", policy=policy)
    UrlHealth.objects.create(url=frozen.endpoint, state=UrlState.FROZEN)
    for number in range(3):
        UrlHealth.objects.create(
            url=f"https://disabled.example/{number}",
            state=UrlState.DISABLED,
            next_probe_at=now + timedelta(hours=1),
        )


def pages(everything: dict[str, dict[str, Any]], *, role: str) -> Iterator[str]:
    """Yield the addresses of all pages that the role reads, and of each row with a page."""
    for name, row in MATRIX.items():
        if role in row.get and not row.is_action:
            yield address_of(name, everything)
    for model in (Subscriber, Subscription):
        for pk in model.objects.values_list("pk", flat=True):
            yield reverse(f"admin:subscriptions_{model._meta.model_name}_status", args=[pk])
    for pk in EventType.objects.filter(pk__gt=0).values_list("pk", flat=True):
        yield reverse("admin:subscriptions_eventtype_change", args=[pk])


@pytest.mark.parametrize("role", [ADMINISTRATOR, SUPPORT])
def test_a_linked_figure_is_the_number_of_rows_of_its_list(role: str) -> None:
    user = User.objects.create_user("ann", is_staff=True)
    user.groups.add(Group.objects.get(name=role))
    everything = make_everything()
    make_more()
    client = Client()
    client.force_login(user)
    wrong, followed = {}, set()
    for page in sorted({"/admin/", *pages(everything, role=role)}):
        answer = client.get(page)
        if answer.status_code != 200 or answer.streaming:
            continue
        for address, figure in links_with_figures(answer.text):
            target = f"{page.partition('?')[0]}{address}" if address.startswith("?") else address
            followed.add(target)
            changelist = client.get(target).context["cl"]
            rows = changelist.queryset.order_by().count()
            if rows != figure:
                wrong[f"{page} → {target}"] = f"{figure} linked, {rows} listed"
    assert wrong == {}
    assert len(followed) >= 5
