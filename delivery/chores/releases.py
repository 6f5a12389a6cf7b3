"""The duty of releasing what was to be held until a moment."""

from datetime import datetime

from delivery.support import releases


def run_once(_now: datetime) -> int:
    """Release what is due, by the database's clock, and return how much was done."""
    return releases.release_due() + releases.end_catching_up()
