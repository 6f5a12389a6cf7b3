"""Sets up Django on a database server of the tests' own, then offers what several kinds of test use."""

from collections.abc import Iterator
from pathlib import Path

import django
import pytest

from tests import surroundings

# Here, not in a hook: conftests further down import models as they are loaded.
surroundings.arrange()
django.setup()

from tests.receivers import Receiver  # noqa: E402 - settings must be readable before

# Fixtures that make a test transactional, whatever its mark says.
EMPTYING = {"live_server", "transactional_db"}
# Whose tests share a product that is started for them; other tests share what their file makes.
FOLDERS_OF_A_PRODUCT = {"browser/product", "faults", "flows", "operation"}


def pytest_itemcollected(item: pytest.Item) -> None:
    """Let what migrations made outlive tests that empty all tables, and keep together what shares something started."""
    marker = item.get_closest_marker("django_db")
    asks = marker and marker.kwargs.get("transaction")
    if asks or not EMPTYING.isdisjoint(_fixtures(item)):
        # All of them or none: where one lets Django make content types anew, those put back clash with them.
        item.add_marker(pytest.mark.django_db(transaction=True, serialized_rollback=True), append=False)
    if not _asks_the_database(item):
        file = item.path.relative_to(Path(__file__).parent)
        folder = str(file.parent)
        item.add_marker(pytest.mark.xdist_group(folder if folder in FOLDERS_OF_A_PRODUCT else str(file)))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with those that start products: they take longest, and the many short ones fill what is left at the end."""
    items.sort(key=_asks_the_database)


def _asks_the_database(item: pytest.Item) -> bool:
    return item.get_closest_marker("django_db") is not None or "db" in _fixtures(item)


def _fixtures(item: pytest.Item) -> list[str]:
    return getattr(item, "fixturenames", [])


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A real HTTP receiver of the test's own."""
    with Receiver() as receiver:
        yield receiver


@pytest.fixture(scope="session", autouse=True)
def _leave_no_connection(django_db_setup: None) -> Iterator[None]:
    """The test database cannot be dropped while the thread that wakes senders is connected to it."""
    from delivery import wake

    yield
    wake.disconnect()
