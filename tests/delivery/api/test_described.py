"""The OpenAPI document is complete, and no request made from it breaks anything."""

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from django.core.management import call_command
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from hypothesis import HealthCheck, Phase, settings
from schemathesis import checks

from config.wsgi import application
from subscriptions.models import Publisher, Scope
from tests import factories

EXAMPLES = 10


@pytest.fixture
def description(db: None) -> Iterator[Any]:
    """The document, with rows that its examples may hit by chance."""
    factories.event_type("0")
    factories.delivery()
    # As Django's own test client: each request would end the connection, and the transaction of the test.
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield schemathesis.openapi.from_wsgi("/api/schema/?format=json", application)
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


@pytest.fixture
def keys(db: None) -> dict[bool, str]:
    """A key that publishes, and one for everything else."""
    return {
        True: factories.api_key(Scope.PUBLISH, publisher=Publisher.objects.create(name="0"))[1],
        False: factories.api_key()[1],
    }


schema = schemathesis.pytest.from_fixture("description")


def test_the_description_is_generated_without_a_warning(tmp_path: Any) -> None:
    call_command("spectacular", validate=True, fail_on_warn=True, file=str(tmp_path / "schema.yml"))


@schema.parametrize()
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_whatever_fits_the_description_gets_an_answer_that_fits_it(
    case: schemathesis.Case, keys: dict[bool, str]
) -> None:
    is_publishing = "/events/" in case.path or case.path.endswith("messages:batch")
    case.call_and_validate(
        headers={"Authorization": f"Bearer {keys[is_publishing]}"},
        checks=[
            checks.not_a_server_error,
            checks.content_type_conformance,
            checks.status_code_conformance,
            checks.response_schema_conformance,
        ],
    )
