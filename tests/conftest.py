"""Sets up Django on a database server of the tests, and offers fixtures that all tests share."""

import gc
import importlib
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import django
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants
from pytest_django import DjangoDbBlocker

from tests.support import surroundings

# Until all modules are imported and all tests collected, nearly everything that is made stays.
gc.disable()
# Here, not in a hook: conftests further down import models as they are loaded.
surroundings.arrange()
django.setup()

from django.conf import settings as django_settings  # noqa: E402 - they must be readable before
from django.db import connection  # noqa: E402
from django.test import TransactionTestCase  # noqa: E402

from tests.support import ci_tools, copied_database, reset  # noqa: E402
from tests.support.receivers import Receiver  # noqa: E402
from tests.system.faults import pgbouncer, twin, vanishing  # noqa: E402
from tests.system.flows import webhooks  # noqa: E402
from tests.system.operation import previous  # noqa: E402

# The folder that `prepare` fills; whitenoise warns if it does not exist.
django_settings.STATIC_ROOT.mkdir(parents=True, exist_ok=True)
# The real hashers take a quarter of a second each, on purpose; started products have them.
django_settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

# Each process has a database of its own, and therefore an archive.
ARCHIVE = django_settings.ENVIRONMENT.home / f"archive-{os.environ.get('PYTEST_XDIST_WORKER', '')}"
django_settings.ENVIRONMENT = replace(django_settings.ENVIRONMENT, history_url=str(ARCHIVE))

TESTS = Path(__file__).parent
# The tests of `manage.py test` without `--full`, and the random examples of each kind that it
# draws; then those of all other runs.
QUICK = "not slow"
EXAMPLES = 20
EXAMPLES_OF_FULL = 60
# The widest first: several tests share the objects that such fixtures start.
SCOPES = ("session", "package", "module")


def pytest_configure(config: pytest.Config) -> None:
    """Draw the same examples in every run, on CI too.

    Hypothesis and schemathesis have other defaults there. With `--full`, and when a test is run by
    its name, there are more examples.
    """
    settings.register_profile(
        "inturn",
        max_examples=EXAMPLES if config.option.markexpr == QUICK else EXAMPLES_OF_FULL,
        derandomize=True,
        database=None,
        # A busy machine is no failure.
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
        print_blob=True,
    )
    settings.load_profile("inturn")
    # Hypothesis would also draw the constants of all modules imported so far: examples would depend
    # on the tests before.
    assert callable(providers._get_local_constants)
    providers._get_local_constants = Constants
    if "PYTEST_XDIST_WORKER" in os.environ:
        config.pluginmanager.register(copied_database)


@pytest.hookimpl(wrapper=True)
def pytest_sessionstart(session: pytest.Session) -> Iterator[None]:
    """Migrate in the main process while the workers, which have just started, import."""
    yield
    if session.config.pluginmanager.hasplugin("dsession"):
        copied_database.migrate(session.config)


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> None:
    """Begin in each process with other modules, whose bytecode the other processes then read.

    In a new clone each of them would compile all modules.
    """
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is None:
        return
    files = sorted(TESTS.rglob("test_*.py"))
    for file in files[int(worker[2:]) :: int(os.environ["PYTEST_XDIST_WORKER_COUNT"])]:
        name = ".".join(file.relative_to(TESTS.parent).with_suffix("").parts)
        # A module that fails is imported, and reported, once more.
        with suppress(Exception):
            importlib.import_module(name)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Give each test an id of its own, and tests with a shared product, browser or Spark one group.

    One process gets all tests of a group, whose name is at the end of their ids: the product that
    they share starts once. xdist 3.8 would append it for a mark, and schemathesis would name the
    operation, but since pytest 9.2 the id is another attribute than they set. Of tests with equal
    ids xdist runs one.
    """
    if isinstance(item, pytest.Function) and item.parent is not None:
        shared = _shared(item) if item.config.getoption("loadgroup", None) else ""
        item._id = item._id.parse(f"{item.parent.nodeid}::{item.name}{shared and f'@{shared}'}")
        assert item.nodeid.endswith(shared or item.name), "pytest has moved the id once more"


def _shared(item: pytest.Function) -> str:
    definitions = [found[-1] for found in item._fixtureinfo.name2fixturedefs.values()]
    # Fixtures of plug-ins have no folder, and those of all tests start nothing.
    ours = [
        definition
        for definition in definitions
        if definition.baseid.startswith("tests/") and not definition.argname.startswith("_")
    ]
    wide = [
        (SCOPES.index(own_item.scope), own_item.baseid, own_item.argname)
        for own_item in ours
        if own_item.scope in SCOPES
    ]
    return "/".join(min(wide)[1:]) if wide else ""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest tests: at the end the other processes would wait for them.

    Those of the started product mostly wait, so others run beside them.
    """
    assert len({item.nodeid for item in items}) == len(items), (
        "xdist runs one of tests with equal ids"
    )
    items.sort(
        key=lambda item: (
            item.get_closest_marker("long") is None and not item.nodeid.startswith("tests/system/")
        )
    )


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """Keep the garbage collector from the modules and tests, which stay as long as the process.

    It took an eighth of the time of a process, mostly to look through them in vain.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Name in one line, just before pytest's own last one, the tests that this run left out."""
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
    if why := previous.missing():
        gaps.append(f"the version before beside this one ({why})")
    if ci_tools.MISSING:
        gaps.append(
            f"chart, compose file, alerts, bill of materials, archive on S3 ({ci_tools.MISSING})"
        )
    if config.option.markexpr == QUICK:
        gaps.append("slow tests (--full)")
    if gaps:
        terminalreporter.write_line(f"Not tested: {', '.join(gaps)}.")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A real HTTP receiver of one test."""
    with Receiver() as receiver:
        yield receiver


@pytest.fixture(scope="session", autouse=True)
def _put_back(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Make all tests find the same database, in any order."""
    with django_db_blocker.unblock():
        # Unless a test needs it, the tests have no database.
        migrated = reset.remember() if connection.introspection.table_names() else None
        connection.close()
    if migrated is None:
        yield
        return
    with pytest.MonkeyPatch.context() as patch:

        def put_back(_case: TransactionTestCase) -> None:
            reset.put_back(migrated)
            # It has the identity that the database had.
            shutil.rmtree(ARCHIVE, ignore_errors=True)

        patch.setattr(TransactionTestCase, "_fixture_teardown", put_back)
        # TestCase has a teardown of its own, which rolls back and does not call this one.
        yield


@pytest.fixture(autouse=True)
def _nothing_known_of_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    """All tests have their messages in the same range."""
    from delivery.maintenance import kept_ranges

    monkeypatch.setattr(kept_ranges, "_kept_until", {})


@pytest.fixture(scope="session", autouse=True)
def _leave_no_connection(django_db_setup: None) -> Iterator[None]:
    """Disconnect the thread that wakes senders: otherwise the test database cannot be dropped."""
    from delivery.lifecycle import notifier

    yield
    notifier.disconnect_notifier()
