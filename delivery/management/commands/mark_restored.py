"""`mark_restored`: make open deliveries of a restored database IN_DOUBT, before Inturn starts."""

from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from delivery.database.versions import require_this_version
from delivery.maintenance.restored_database import SendersRunningError, mark_restored


class Command(BaseCommand):
    help = (
        "Mark the open deliveries of a restored database as IN_DOUBT: "
        "they may have been sent since its back-up."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--made-at", required=True, metavar="TIME", help="of the back-up, with time zone"
        )
        parser.add_argument(
            "--nothing-sent-since",
            action="store_true",
            help="leave open deliveries open: nothing was sent since",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        require_this_version()
        made_at = _moment(options["made_at"])
        try:
            marked = mark_restored(
                made_at=made_at,
                nothing_sent_since=options["nothing_sent_since"],
                now=timezone.now(),
            )
        except SendersRunningError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(
            f"{marked.in_doubt:,} open deliveries became IN_DOUBT: find them in the console "
            f"under Deliveries, with status IN_DOUBT; {marked.jobs} resubmissions and replays were "
            f"cancelled; the next message is msg_{marked.next_message}"
        )


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise CommandError(
            f"{text!r} is no time: give one like 2026-01-31T12:00:00+00:00"
        ) from error
    if moment.tzinfo is None:
        raise CommandError(f"{text!r} has no time zone: add one, such as +00:00")
    return moment
