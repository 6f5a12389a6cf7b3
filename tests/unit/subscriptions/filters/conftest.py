import pytest
from django.db import connection

from subscriptions.filters import INTURN_JSON_FUNCTION


@pytest.fixture
def inturn_json(db: None) -> None:
    """The function as this source has it, whatever the migrations made of it."""
    with connection.cursor() as cursor:
        cursor.execute(INTURN_JSON_FUNCTION)
