"""The demo's trickle: made-up messages, published one by one until the process is told to stop."""

import logging
import time
from random import Random, randrange

import orjson
from django.db import Error, IntegrityError, connection
from django.utils import timezone

from delivery.demo.artifacts import CREATE, Artifacts, Happening
from delivery.demo.cast import QUEUES, Cast, provision
from delivery.demo.receivers import HOST, Ports
from delivery.publishing.callback_urls import CALLBACK_URL
from delivery.publishing.drafts import Draft, PublishRefusedError
from delivery.publishing.publish import publish
from subscriptions.database_away import is_away

log = logging.getLogger(__name__)

PAUSE_SECONDS = 0.5
# Where the demo's publisher hears by callback how a build ended.
BUILDS_DONE = "/teamforge/builds-done"
# What is delivered, rather than published, goes to one subscriber only: now and then.
DESTINATION = "demo-reporting"
DELIVERED_ONCE_IN = 8
# A demo that was forgotten must not fill the disk.
BRISK_SECONDS = 600.0
LATER_PAUSE_SECONDS = 5.0


def trickle(ports: Ports) -> None:
    """Provision and publish, for ever; a database that is away for a while costs a few messages."""
    artifacts = Artifacts(Random())
    began = time.monotonic()
    cast: Cast | None = None
    while True:
        try:
            cast = cast or provision(ports)
            _publish(cast, artifacts.happen(now=timezone.now()), ports)
        except IntegrityError:
            # Someone deleted what it leans on.
            cast = None
        except Error as error:
            if not is_away(error):
                raise
            log.warning("the database is away", extra={"error": str(error)})
            connection.close()
        except PublishRefusedError as error:
            log.warning("a message of the demo was refused", extra={"error": error.detail})
        time.sleep(pause_seconds(time.monotonic() - began))


def pause_seconds(running_seconds: float) -> float:
    return PAUSE_SECONDS if running_seconds < BRISK_SECONDS else LATER_PAUSE_SECONDS


def _publish(cast: Cast, happening: Happening, ports: Ports) -> None:
    headers = {
        "content-type": "application/json",
        "filter-string": happening.project,
        "priority": happening.priority,
    }
    if happening.event == CREATE and randrange(DELIVERED_ONCE_IN) == 0:
        headers["destination"] = DESTINATION
    if happening.event in QUEUES:
        headers[CALLBACK_URL] = f"http://{HOST}:{ports.answering}{BUILDS_DONE}"
    draft = Draft(
        event_type=cast.event_types[happening.event],
        headers=headers,
        body=orjson.dumps(happening.body),
        content_type="application/json",
    )
    publish(cast.publisher, [draft])
