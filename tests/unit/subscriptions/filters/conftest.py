import pytest
from django.db import connection

from subscriptions.filters import INTURN_JSON_FUNCTION


@pytest.fixture
def inturn_json(db: None) -> None:
    """Create the function as in the current source, whatever version the migrations created."""
    with connection.cursor() as cursor:
        cursor.execute(INTURN_JSON_FUNCTION)
