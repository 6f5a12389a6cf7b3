"""`smoke`: publish a message, wait until it is DELIVERED, clean up."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from delivery.management.client.rest import ClientError
from delivery.management.client.smoke import SmokeError, temporary_key, try_one


class Command(BaseCommand):
    help = (
        "Publish one message to a receiver of its own and into a mailbox, "
        "wait until it is DELIVERED, fetch and acknowledge it; leaves nothing behind."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--url", default=settings.ENVIRONMENT.base_url)
        parser.add_argument(
            "--key", default=settings.ENVIRONMENT.bootstrap_key, help="a manage key"
        )
        parser.add_argument(
            "--seconds", type=float, default=15.0, help="how long to wait for the delivery"
        )

    def handle(self, *args: Any, url: str, key: str, seconds: float, **options: Any) -> None:
        try:
            if key:
                steps = try_one(url, key=key, seconds=seconds)
            else:
                with temporary_key() as made:
                    steps = try_one(url, key=made, seconds=seconds)
        except (SmokeError, ClientError) as error:
            raise CommandError(str(error)) from error
        for name, took in steps:
            self.stdout.write(f"{name:<44} {took * 1000:8.1f} ms")
        self.stdout.write("ok")
