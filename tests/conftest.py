"""Sets up Django on a database server of the tests' own, then offers what several kinds of test use."""

from collections.abc import Iterator

import django
import pytest
from hypothesis import HealthCheck, settings

from tests.support import surroundings

# Here, not in a hook: conftests further down import models as they are loaded.
surroundings.arrange()
django.setup()

from tests.support.receivers import Receiver  # noqa: E402
from tests.system.faults import pgbouncer, twin, vanishing  # noqa: E402 - settings must be readable before
from tests.system.flows import webhooks  # noqa: E402

# Fixtures that make a test transactional, whatever its mark says.
EMPTYING = {"live_server", "transactional_db"}


def pytest_configure(config: pytest.Config) -> None:
    """Draw the same examples in every run, on CI as elsewhere: left alone, hypothesis and schemathesis have other ways there."""
    settings.register_profile(
        "inturn",
        derandomize=True,
        database=None,
        # A busy machine is no failure.
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
        print_blob=True,
    )
    settings.load_profile("inturn")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Let what migrations made, such as the built-in policies, outlive tests that empty all tables.

    All of them or none: where one lets Django make content types anew, those put back clash with them.
    """
    marker = item.get_closest_marker("django_db")
    asks = marker and marker.kwargs.get("transaction")
    if asks or not EMPTYING.isdisjoint(getattr(item, "fixturenames", ())):
        item.add_marker(pytest.mark.django_db(transaction=True, serialized_rollback=True), append=False)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest: at the end the other processes would wait for it."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say in one line, just before pytest's own last one, what this run did not test."""
    gaps = []
    if surroundings.CHROMIUM is None:
        gaps.append(f"the console in a browser (no chromium: {surroundings.HOW_TO_GET_CHROMIUM})")
    if webhooks.REAL not in webhooks.SOURCES:
        gaps.append(f"real payloads ({webhooks.PLACE} names no file of them)")
    if pgbouncer.PROGRAM is None:
        gaps.append(f"behind PgBouncer ({pgbouncer.HOW_TO_GET_IT})")
    if why := twin.missing():
        gaps.append(f"two machines with the same home ({why})")
    if why := vanishing.missing():
        gaps.append(f"a database machine that vanishes ({why})")
    if config.option.markexpr == "not slow":
        gaps.append("slow tests (--full)")
    if gaps:
        terminalreporter.write_line(f"Not tested: {', '.join(gaps)}.")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A real HTTP receiver of the test's own."""
    with Receiver() as receiver:
        yield receiver


@pytest.fixture(scope="session", autouse=True)
def _leave_no_connection(django_db_setup: None) -> Iterator[None]:
    """The test database cannot be dropped while the thread that wakes senders is connected to it."""
    from delivery.lifecycle import wake

    yield
    wake.disconnect()
