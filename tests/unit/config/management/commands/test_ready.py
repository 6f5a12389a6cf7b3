"""Whether senders, chores and the history are at work: `/readyz?part=…` and `manage.py ready`."""

import os
from collections.abc import Iterator
from datetime import timedelta
from urllib.parse import urlsplit

import psycopg
import pytest
from django.db import connection
from django.test import Client

from config import env
from config.management.commands.ready import is_at_work
from delivery.database.connections import connection_parameters
from delivery.database.parts import session_parameters
from delivery.database.queries import rows
from tests.unit.delivery.api.client import ApiAnswer, refused

pytestmark = pytest.mark.django_db(transaction=True)

NAMES = {
    "senders": "inturn sender 1 0 3 1",
    "chores": "inturn chores 1",
    "history": "inturn pipeline 1",
}


@pytest.fixture(params=NAMES)
def part(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def at_work(part: str) -> Iterator[psycopg.Connection]:
    """A session like those of the part."""
    parameters = connection_parameters() | {"application_name": NAMES[part]}
    with psycopg.connect(**parameters, autocommit=True) as session:
        session.execute("SELECT")
        yield session


def environment() -> env.Environment:
    server = urlsplit(os.environ["DATABASE_URL"])
    url = server._replace(path=f"/{connection.settings_dict['NAME']}").geturl()
    return env.read_environment(os.environ | {"DATABASE_URL": url})


def test_a_part_without_sessions_is_not_ready(part: str) -> None:
    refused(ApiAnswer(Client().get(f"/readyz?part={part}")), 503, "part-not-running")
    assert not is_at_work(part, environment())
    assert Client().get("/readyz").json() == {"status": "ready"}


@pytest.mark.usefixtures("at_work")
def test_a_part_with_a_session_is_ready(part: str) -> None:
    answer = Client().get(f"/readyz?part={part}")
    assert answer.json() == {"status": "ready", "part": part, "running": 1}
    assert is_at_work(part, environment())
    assert f'inturn_part_sessions{{part="{part}"}} 1.0' in Client().get("/metrics").text


@pytest.mark.usefixtures("at_work")
def test_a_session_that_has_been_idle_for_too_long_does_not_count(part: str) -> None:
    parameters = session_parameters(is_own=False) | {"at_work": timedelta(0)}
    assert dict(rows("running_sessions", parameters))[part] == 0


def test_an_unknown_part_is_refused() -> None:
    refused(ApiAnswer(Client().get("/readyz?part=postgres")), 400, "unknown-part")
