"""The database's clock at the very moment a row is written, not when its transaction began."""

from django.db.models import DateTimeField, Func


class Clock(Func):
    """`clock_timestamp()`, which is never before the transaction's own beginning.

    So what is exported until a moment is complete once all who wrote then have ended (see `delivery.history.postgres.window`).
    """

    function = "clock_timestamp"
    template = "%(function)s()"
    output_field = DateTimeField()


class ArchiveClock(Clock):
    """The same for what is archived by its time: what is published, settled or noted is never before what an export has taken already.

    The database's clock goes back when another server takes over whose clock is behind, or when it is set. What had a time before
    the archive's end would never be archived, and retention would remove it. So it has that end for its time,
    until the clock is past it again. Statements write it `(SELECT delivery_clock())`: that is asked once for all rows.
    """

    function = "delivery_clock"
