"""Inturn's own event types: all may subscribe, only Inturn changes and publishes them."""

import pytest

from subscriptions.models import EventType, Publisher
from tests.support import factories
from tests.unit.delivery.api.client import Caller, created, fields_of, refused

NAME = "Inturn.Delivery.Failed"


@pytest.mark.parametrize("name", ["Inturn.Mine", NAME])
def test_a_reserved_name_cannot_be_created(manager: Caller, name: str) -> None:
    assert fields_of(refused(manager.post("event-types", {"name": name}), 400)) == {"name"}


def test_no_other_is_renamed_to_one(manager: Caller) -> None:
    factories.event_type("Mine")
    refused(manager.patch("event-types/Mine", {"name": "Inturn.Mine"}), 400)


def test_the_reserved_event_type_cannot_be_changed(manager: Caller) -> None:
    refused(manager.patch(f"event-types/{NAME}", {"description": "mine"}), 409, "built-in")
    refused(manager.delete(f"event-types/{NAME}"), 409, "built-in")
    assert EventType.objects.filter(name=NAME).exists()


def test_the_reserved_event_type_cannot_be_published(
    publisher: Publisher, publishing: Caller
) -> None:
    refused(publishing.publish(NAME), 403, "reserved")
    refused(publishing.post("messages:batch", [{"event": NAME, "body": {}}]), 403, "reserved")


def test_everybody_may_subscribe(manager: Caller) -> None:
    fields = {
        "name": "failures",
        "subscriber": factories.subscriber("ops").name,
        "event_type": NAME,
    }
    created(manager.post("subscriptions", fields | {"endpoint": "http://127.0.0.1:9/hook"}))


def test_names_that_only_look_alike_are_free(manager: Caller) -> None:
    for name in ("Inturnal.Audit", "My.Inturn.Failed", "inturn.mine"):
        created(manager.post("event-types", {"name": name}))
