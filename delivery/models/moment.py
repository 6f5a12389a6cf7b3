"""The database's clock at the very moment a row is written, not when its transaction began."""

from django.db.models import DateTimeField, Func


class Clock(Func):
    """`clock_timestamp()`, which is never before the transaction's own beginning.

    So what is exported until a moment is complete once all who wrote then have ended (see `delivery.history.window`).
    """

    function = "clock_timestamp"
    template = "%(function)s()"
    output_field = DateTimeField()
