"""Users of the console, without a browser."""

from dataclasses import replace

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from pytest_django.fixtures import Settings

from subscriptions.models import Mode, Subscription
from tests.support import factories


@pytest.fixture
def ann(db: None) -> Client:
    """A signed-in administrator."""
    client = Client()
    client.force_login(User.objects.create_superuser("ann"))
    return client


@pytest.fixture
def reader(db: None) -> Client:
    """A user who may see everything and change nothing."""
    user = User.objects.create_user("ray", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__startswith="view_"))
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def no_networks(settings: Settings) -> None:
    """Refuse endpoints in private networks, as an installation does by default."""
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, allowed_networks=())


@pytest.fixture
def pulled(db: None) -> Subscription:
    """A subscription in the mailbox of depot."""
    return factories.subscription(
        "parcels", subscriber=factories.subscriber("depot"), mode=Mode.PULL, max_receives=5
    )
