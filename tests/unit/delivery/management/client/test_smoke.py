"""`smoke` where its journey fails: it names the remedy, and leaves no rows behind."""

from dataclasses import replace

import pytest
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from delivery.management.client.smoke import SmokeError, temporary_key, try_one
from subscriptions.models import ApiKey, EventType, Publisher, Subscriber

pytestmark = pytest.mark.django_db(transaction=True)


def test_smoke_prints_how_to_allow_the_loopback(
    live_server: LiveServer, settings: Settings
) -> None:
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, allowed_networks=())
    # Not `as caught`: its frames would keep the connection, and with it the test database, in use.
    with pytest.raises(SmokeError, match=ONE_LINE), temporary_key() as key:
        try_one(live_server.url, key=key, seconds=1)
    assert [model.objects.filter(name__startswith="smoke").count() for model in MADE] == [0] * len(
        MADE
    )


ONE_LINE = r"\A.*start it again with INTURN_ALLOWED_NETWORKS=127\.0\.0\.0/8.*\Z"
MADE = (ApiKey, EventType, Publisher, Subscriber)
