"""The OpenAPI document is complete, and no request made from it breaks anything."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from django.core.management import call_command
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from hypothesis import HealthCheck, given, settings
from schemathesis import checks
from schemathesis.core.result import Ok

from config.wsgi import application
from subscriptions.models import Mode, Scope
from tests import factories

EXAMPLES = 12

DESCRIPTION = schemathesis.openapi.from_wsgi("/api/schema/?format=json", application)
OPERATIONS: dict[str, Any] = {
    operation.label: operation
    for operation in (found.ok() for found in DESCRIPTION.get_all_operations() if isinstance(found, Ok))
}
CHECKS: list[Any] = [
    checks.not_a_server_error,
    checks.content_type_conformance,
    checks.status_code_conformance,
    checks.response_schema_conformance,
]


@pytest.fixture(autouse=True)
def connection_of_the_test(db: None) -> Iterator[None]:
    """As Django's own test client: each request would end the connection, and the transaction of the test."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


def test_the_description_is_generated_without_a_warning(tmp_path: Path) -> None:
    call_command("spectacular", validate=True, fail_on_warn=True, file=str(tmp_path / "schema.yml"))


@pytest.mark.parametrize("label", OPERATIONS)
def test_whatever_fits_the_description_gets_an_answer_that_fits_it(label: str) -> None:
    # Names that its examples hit.
    factories.event_type("0")
    subscriber = factories.subscriber("0")
    factories.delivery()
    factories.delivery(subscription=factories.subscription(subscriber=subscriber, mode=Mode.PULL))
    publisher = factories.publisher("0")
    is_publishing = label.endswith(("/messages", "messages:batch")) and label.startswith("POST")
    key = factories.api_key(Scope.PUBLISH, publisher=publisher) if is_publishing else factories.api_key()
    if "/mailboxes/" in label:
        key = factories.api_key(Scope.FETCH, subscriber=subscriber)

    @given(case=OPERATIONS[label].as_strategy())
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    def ask(case: schemathesis.Case[Any]) -> None:
        case.call_and_validate(headers={"Authorization": f"Bearer {key[1]}"}, checks=CHECKS)

    ask()
