"""The database's clock when a row is written, rather than at the begin of the transaction."""

from django.db.models import DateTimeField, Func


class Clock(Func):
    """`clock_timestamp()`, which is never before the start of the transaction.

    So an export up to a moment is complete once all transactions writing then have ended (see
    `delivery.history.postgres.window`).
    """

    function = "clock_timestamp"
    template = "%(function)s()"
    output_field = DateTimeField()


class ArchiveClock(Clock):
    """The clock for archived rows: the time is never before the end of an earlier export.

    It applies to publications, settlements and journal entries. The database's clock goes back when
    it is set, or when another server with a slower clock takes over. A row with a time before the
    archive's end would never be archived, and retention would remove it. So the row gets this end
    as time, until the clock is past it again. Statements write it as `(SELECT delivery_clock())`,
    which is evaluated once for all rows.
    """

    function = "delivery_clock"
