"""The demo's trickle: invented messages, published singly until the process ends."""

import logging
import time
from random import Random, randrange

import orjson
from django.db import Error, IntegrityError, connection
from django.utils import timezone

from delivery.management.demo.artifacts import CREATE, Artifacts, Happening
from delivery.management.demo.cast import QUEUES, DemoObjects, provision_demo
from delivery.management.demo.receivers import HOST, Ports
from delivery.publishing.callback_urls import CALLBACK_URL
from delivery.publishing.drafts import Draft, PublishRefusedError
from delivery.publishing.publish import publish
from subscriptions.database_away import is_away

log = logging.getLogger(__name__)

PAUSE_SECONDS = 0.5
# The path at which the demo's publisher gets the results of builds, by callback.
BUILDS_DONE = "/teamforge/builds-done"
# Now and then a message is delivered to this destination only, rather than published.
DESTINATION = "demo-reporting"
DELIVERED_ONCE_IN = 8
# The demo slows down after this time: if forgotten, it must not fill the disk.
BRISK_SECONDS = 600.0
LATER_PAUSE_SECONDS = 5.0


def publish_trickle(ports: Ports) -> None:
    """Provision and publish forever; while the database is away, a few messages are lost."""
    artifacts = Artifacts(Random())
    began = time.monotonic()
    objects: DemoObjects | None = None
    while True:
        try:
            objects = objects or provision_demo(ports)
            _publish(objects, artifacts.happen(now=timezone.now()), ports)
        except IntegrityError:
            # Someone deleted a needed row: provision again.
            objects = None
        except Error as error:
            if not is_away(error):
                raise
            log.warning("the database is away", extra={"error": str(error)})
            connection.close()
        except PublishRefusedError as error:
            log.warning("a message of the demo was refused", extra={"error": error.detail})
        time.sleep(trickle_pause(time.monotonic() - began))


def trickle_pause(running_seconds: float) -> float:
    return PAUSE_SECONDS if running_seconds < BRISK_SECONDS else LATER_PAUSE_SECONDS


def _publish(objects: DemoObjects, happening: Happening, ports: Ports) -> None:
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
        event_type=objects.event_types[happening.event],
        headers=headers,
        body=orjson.dumps(happening.body),
        content_type="application/json",
    )
    publish(objects.publisher, [draft])
