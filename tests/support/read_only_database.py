"""A database closed to changes."""

import psycopg
from django.db import connection
from psycopg import sql

from delivery.database.connections import connection_parameters


def set_read_only(value: str) -> None:
    """Set the database read-only as an administrator would; open sessions stay as they are."""
    parameters = connection_parameters() | {"options": "-c default_transaction_read_only=off"}
    with psycopg.connect(**parameters, autocommit=True) as own:
        name = sql.Identifier(connection.settings_dict["NAME"])
        said = sql.SQL("ALTER DATABASE {} SET default_transaction_read_only = {}")
        own.execute(said.format(name, sql.SQL(value)))
