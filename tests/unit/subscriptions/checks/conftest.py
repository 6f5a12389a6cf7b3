"""A signed-in administrator, for checks by the console's forms."""

import pytest
from django.contrib.auth.models import User
from django.test import Client


@pytest.fixture
def ann(db: None) -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("ann"))
    return client
