"""Forms with many values: a choice of a thousand is saved, and more is refused with words."""

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from subscriptions.models import EventType, Publisher
from tests.support import factories

NO_ROWS = {
    f"{rows}-{n}_FORMS": "0" for rows in ("keys", "publish_ids") for n in ("TOTAL", "INITIAL")
}

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("ann"))
    return client


def test_a_publisher_with_more_than_a_thousand_event_types_is_saved(ann: Client) -> None:
    publisher = factories.publisher("many")
    EventType.objects.bulk_create(EventType(name=f"Many.E{number}") for number in range(1100))
    chosen = list(EventType.objects.filter(name__startswith="Many.").values_list("pk", flat=True))
    address = reverse("admin:subscriptions_publisher_change", args=[publisher.pk])
    given = {"name": "many", "description": "new", "event_types": chosen, **NO_ROWS}
    assert ann.post(address, given).status_code == 302
    publisher = Publisher.objects.get(pk=publisher.pk)
    assert (publisher.description, publisher.event_types.count()) == ("new", 1100)


def test_too_many_values_are_refused_with_words(ann: Client) -> None:
    most = settings.DATA_UPLOAD_MAX_NUMBER_FIELDS
    address = reverse("admin:subscriptions_publisher_add")
    answer = ann.post(address, {"event_types": ["1"] * (most + 1)})
    assert answer.status_code == 400
    assert f"has more than {most} values" in answer.content.decode()
