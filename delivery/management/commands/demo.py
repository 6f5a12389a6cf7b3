"""`demo`: examples with receivers of their own, and a trickle of messages; `up --demo` runs it."""

import signal
from types import FrameType
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from delivery.management.demo import slow_reader
from delivery.management.demo.receivers import HOST, receivers
from delivery.management.demo.trickle import publish_trickle
from subscriptions.values.addresses import is_allowed


class Command(BaseCommand):
    help = (
        "Add examples, serve their receivers and publish a trickle of messages, "
        "until Ctrl-C or SIGTERM."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        if not is_allowed(HOST, allowed_networks=settings.ENVIRONMENT.allowed_networks):
            raise CommandError(
                f"The demo's receivers are on {HOST}, where no endpoint may be: "
                "start `manage.py up --demo`, "
                "or set INTURN_ALLOWED_NETWORKS=127.0.0.0/8 for all of Inturn."
            )
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _leave)
        home = settings.ENVIRONMENT.home
        home.mkdir(parents=True, exist_ok=True)
        with receivers(home / "demo-port") as ports:
            self.stdout.write(f"the demo's receivers listen on http://{HOST}:{ports.answering}")
            slow_reader.start_reading(
                home / "demo-fetch-key", url=f"http://{HOST}:{settings.ENVIRONMENT.port}"
            )
            publish_trickle(ports)


def _leave(_number: int, _frame: FrameType | None) -> None:
    raise SystemExit(0)
