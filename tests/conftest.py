"""Sets up Django on a database server of the tests' own, then offers what several kinds of test use."""

from collections.abc import Iterator

import django
import pytest
from hypothesis import HealthCheck, settings
from pytest_django import DjangoDbBlocker

from tests.support import surroundings

# Here, not in a hook: conftests further down import models as they are loaded.
surroundings.arrange()
django.setup()

from django.db import connection  # noqa: E402 - settings must be readable before
from django.test import TransactionTestCase  # noqa: E402

from tests.support import reset  # noqa: E402
from tests.support.receivers import Receiver  # noqa: E402
from tests.system.faults import pgbouncer, twin, vanishing  # noqa: E402
from tests.system.flows import webhooks  # noqa: E402

# What `manage.py test` asks for, unless it is to be full; and how many examples of each kind are drawn then.
QUICK = "not slow"
EXAMPLES = 40
# From the widest: what these fixtures start serves several tests.
SCOPES = ("session", "package", "module")


def pytest_configure(config: pytest.Config) -> None:
    """Draw the same examples in every run, on CI as elsewhere: left alone, hypothesis and schemathesis have other ways there.

    With `--full`, and when a test is run by its name, they are more.
    """
    settings.register_profile(
        "inturn",
        max_examples=EXAMPLES if config.option.markexpr == QUICK else 100,
        derandomize=True,
        database=None,
        # A busy machine is no failure.
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
        print_blob=True,
    )
    settings.load_profile("inturn")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Give tests that share something started, such as a product, a browser or Spark, to one process: it is started once."""
    if isinstance(item, pytest.Function) and (shared := _shared(item)):
        item.add_marker(pytest.mark.xdist_group(shared))


def _shared(item: pytest.Function) -> str:
    definitions = [found[-1] for found in item._fixtureinfo.name2fixturedefs.values()]
    # Those of plug-ins have no folder, and those of all tests start nothing.
    ours = [one for one in definitions if one.baseid.startswith("tests/") and not one.argname.startswith("_")]
    wide = [(SCOPES.index(one.scope), one.baseid, one.argname) for one in ours if one.scope in SCOPES]
    return "/".join(min(wide)[1:]) if wide else ""


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
    if config.option.markexpr == QUICK:
        gaps.append("slow tests (--full)")
    if gaps:
        terminalreporter.write_line(f"Not tested: {', '.join(gaps)}.")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A real HTTP receiver of the test's own."""
    with Receiver() as receiver:
        yield receiver


@pytest.fixture(scope="session", autouse=True)
def _put_back(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Let all tests find the same in the database, in whatever order they run."""
    with django_db_blocker.unblock():
        # Without a test that wants it, there is no database of the tests.
        migrated = reset.remember() if connection.introspection.table_names() else None
        connection.close()
    if migrated is None:
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", lambda _case: reset.put_back(migrated))
        # TestCase has one of its own, which rolls back and does not come here.
        yield


@pytest.fixture(scope="session", autouse=True)
def _leave_no_connection(django_db_setup: None) -> Iterator[None]:
    """The test database cannot be dropped while the thread that wakes senders is connected to it."""
    from delivery.lifecycle import wake

    yield
    wake.disconnect()
