"""The OpenAPI document is complete, and generated requests get the described answers."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from django.core.management import call_command
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from hypothesis import HealthCheck, settings
from schemathesis import checks
from schemathesis.core.result import Ok
from schemathesis.generation.hypothesis.builder import (
    HypothesisTestConfig,
    HypothesisTestMode,
    create_test,
)
from schemathesis.schemas import APIOperation

from config.wsgi import application
from subscriptions.models import Mode, Scope
from tests.support import factories
from tests.support.quick import STRIDE

EXAMPLES = settings().max_examples // 8

DESCRIPTION = schemathesis.openapi.from_wsgi("/api/schema/?format=json", application)
# Refused everywhere, which the document says once.
DESCRIPTION.config.generation.allow_x00 = False
# Every request has its key: a drawn one, or none, would count as the mistake in a negative case.
DESCRIPTION.config.generation.with_security_parameters = False
CHECKS: list[Any] = [
    checks.not_a_server_error,
    checks.content_type_conformance,
    checks.status_code_conformance,
    checks.response_schema_conformance,
    checks.response_headers_conformance,
    checks.unsupported_method,
    checks.negative_data_rejection,
]
# Rules that the description cannot express: about other rows, the time of day, two fields together
# or the letters of a name.
BEYOND_OPENAPI = re.compile(
    "|".join(
        [
            "Choose REJECT: only an answer of 3xx",
            "Only the circuit breaker freezes a URL",
            "A URL is disabled before it is frozen",
            "is RETRY_LANE and .* is IN_PLACE",
            "(EXPONENTIAL|LISTED) is a schedule of the",
            "These are the waits of a LISTED schedule",
            "Say how long each retry of a LISTED schedule waits",
            "SUSPEND follows on attempts made in place",
            "Say after how many attempts",
            "Give at least freeze_failures",
            "Nothing is rejected under this policy",
            "Datetime value out of range",
            "^(endpoint|probe_url|headers|forward_headers): ",
            "Messages of .* are .*, not ",
            "The body is not JSON",
            "The body is JSON that Inturn cannot use",
            "Expecting value",
            "There is no (subscription|subscriber|publisher|event type|policy)",
            "This time is in the past",
            "This is a time to come",
            "must (be less|not be more) than",
            "A SYNC message is answered at once",
            "A key is limited to one publisher or to one subscriber",
            "Only a read key can be limited",
            "It cannot be changed",
            "in the address or several in the body, not both",
            "It counts the attempts of the actions",
            "A PUSH subscription needs an endpoint",
            "Only a QUEUE has groups",
            "with a subscription to Inturn.Delivery.Failed",
            "With type (none|basic|bearer) give exactly",
            "There is no (such )?(list|field)",
            "An object with .* belongs here",
            "Give the digest of the plan",
            "It stands twice in the document",
            "so it cannot be deleted",
            "is (no|not a) header name",
            "is no wait",
            "is never sent along",
            "A publish id has",
            "Give it together with s",
            "That moment has passed",
            "has no (script|sample|message)",
            "A PULL subscription has none",
            "It holds a number over 64 bits",
            "cannot count as success",
            r"line \d+: ",
        ]
    )
)


def _operations() -> dict[str, APIOperation[Any, Any, Any, Any]]:
    operations = {}
    for found in DESCRIPTION.get_all_operations():
        assert isinstance(found, Ok), found.err()
        operations[found.ok().label] = found.ok()
    return operations


OPERATIONS = _operations()


@pytest.fixture(autouse=True)
def connection_of_the_test(db: None) -> Iterator[None]:
    """Keep the connection open, as Django's own test client does.

    Otherwise each request would end it, and the test's transaction.
    """
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


@pytest.fixture
def keys() -> dict[str, str]:
    """Create rows with the names in the examples; return a key for each part of the API.

    No example can revoke these keys.
    """
    factories.event_type("0")
    subscriber = factories.subscriber("0")
    factories.delivery()
    factories.delivery(subscription=factories.subscription(subscriber=subscriber, mode=Mode.PULL))
    publisher = factories.publisher("0")
    return {
        "publish": factories.api_key(Scope.PUBLISH, publisher=publisher)[1],
        "fetch": factories.api_key(Scope.FETCH, subscriber=subscriber)[1],
        "manage": factories.api_key()[1],
    }


def test_the_description_is_generated_without_a_warning(tmp_path: Path) -> None:
    call_command("spectacular", validate=True, fail_on_warn=True, file=str(tmp_path / "schema.yml"))


# Schemathesis cannot generate JSON lines.
@pytest.mark.filterwarnings("ignore:Skipped test cases with unsupported payload media types")
@pytest.mark.parametrize("label", OPERATIONS)
def test_requests_made_from_the_description_get_answers_that_fit_it(
    label: str, keys: dict[str, str]
) -> None:
    # With its own decorator schemathesis draws the cases of all operations while pytest collects:
    # four seconds of processor time in each process, before its first test.
    asked = create_test(
        operation=OPERATIONS[label],
        test_func=ask,
        config=HypothesisTestConfig(project=DESCRIPTION.config, modes=list(HypothesisTestMode)),
    )
    # Such as each bound of each field.
    derived = getattr(asked, "hypothesis_explicit_examples", [])
    derived[:] = derived[::STRIDE]
    asked(keys=keys)


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
def ask(case: schemathesis.Case[Any], keys: dict[str, str]) -> None:
    path = case.operation.path
    part = (
        "fetch"
        if "/mailboxes/" in path
        else "publish"
        if path.endswith(("/messages", "messages:batch"))
        else "manage"
    )
    response = case.call(headers={"Authorization": f"Bearer {keys[part]}"})
    if response.status_code == 202 and path.endswith("messages:batch"):
        # With `partial=true` the error of one message is its result.
        return
    is_beyond = response.status_code in (400, 415) and BEYOND_OPENAPI.search(
        response.json()["detail"]
    )
    case.validate_response(
        response, checks=[*CHECKS, *([] if is_beyond else [checks.positive_data_acceptance])]
    )
