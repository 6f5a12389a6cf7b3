"""A migrated database for all processes of a run: the main process migrates, the workers copy."""

import os
from collections.abc import Iterator

import psycopg
import pytest
from django.conf import settings
from django.db import connection
from pytest_django.plugin import blocking_manager_key

from tests.support.databases import database_beside, drop_database


def migrate(config: pytest.Config) -> None:
    """Create the database for the workers to copy; it is dropped at the end of the run."""
    given = connection.settings_dict["NAME"]

    def drop() -> None:
        with config.stash[blocking_manager_key].unblock():
            connection.creation.destroy_test_db(given, verbosity=0)

    with config.stash[blocking_manager_key].unblock():
        connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
        # A database in use cannot be copied.
        connection.close()
    config.add_cleanup(drop)


@pytest.fixture(scope="session")
def django_db_setup(django_test_environment: None) -> Iterator[None]:
    """Copy the database; for workers, where this module is a plug-in."""
    given = connection.settings_dict["NAME"]
    name = f"test_{given}_{os.environ['PYTEST_XDIST_WORKER']}"
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as server:
        # A database left by a killed run.
        drop_database(server, name)
        with database_beside(server, name, template=f"test_{given}"):
            connection.settings_dict["NAME"] = settings.DATABASES["default"]["NAME"] = name
            yield
            connection.close()
