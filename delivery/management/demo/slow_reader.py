"""The demo's slow reader.

Fetches a mailbox by REST, slowly, and sometimes fails to acknowledge.
"""

import logging
import random
import threading
import time
from pathlib import Path

from django.db import Error, connection

from delivery.management.client.mailbox import LONGEST_WAIT_SECONDS, FetchedMessage, RemoteMailbox
from delivery.management.client.rest import ClientError, RestClient
from delivery.management.demo.cast import READER
from subscriptions.models import ApiKey, Scope, Subscriber
from subscriptions.models.api_key import hash_of, new_key

log = logging.getLogger(__name__)

AT_ONCE = 3
WORK_SECONDS = 1.5
# Slightly longer than the work on a fetch; unacknowledged messages come back then.
VISIBILITY_SECONDS = 10
FORGETS_ONCE_IN = 8
REJECTS_ONCE_IN = 25
# The pause while the subscriber or the web server is missing, or the key is revoked.
PAUSE_SECONDS = 5.0


def start_reading(remembered: Path, *, url: str) -> None:
    """Read in the background forever, with the key of the last start."""
    threading.Thread(
        target=_read_for_ever, args=[remembered, url], name="slow reader", daemon=True
    ).start()


def _read_for_ever(remembered: Path, url: str) -> None:
    while True:
        try:
            read_while_possible(remembered, url)
        finally:
            connection.close()
        time.sleep(PAUSE_SECONDS)


def read_while_possible(remembered: Path, url: str) -> None:
    """Read until the mailbox cannot be read, and log the reason.

    A mailbox yet to be created is not logged: at the first start it takes a moment.
    """
    try:
        with RestClient(url, key=_key(remembered)) as client:
            mailbox = RemoteMailbox(client, READER)
            while True:
                _read(mailbox)
    except Subscriber.DoesNotExist:
        return
    except (ClientError, Error) as error:
        log.info("the demo's mailbox is not read for a while", extra={"error": str(error)})


def _key(remembered: Path) -> str:
    """Return the key, which is created once.

    Otherwise each start would leave another key behind.
    """
    if not remembered.exists():
        remembered.touch(mode=0o600)
        remembered.write_text(new_key())
    key = remembered.read_text()
    if not ApiKey.objects.filter(hash=hash_of(key)).exists():
        row = ApiKey(scope=Scope.FETCH, subscriber=Subscriber.objects.get(name=READER), name="demo")
        row.set_key(key)
        row.save()
    return key


def _read(mailbox: RemoteMailbox) -> None:
    fetched = mailbox.fetch(most=AT_ONCE, wait=LONGEST_WAIT_SECONDS, visibility=VISIBILITY_SECONDS)
    for message in fetched:
        time.sleep(WORK_SECONDS)
        _decide(mailbox, message)
    if not fetched:
        time.sleep(WORK_SECONDS)


def _decide(mailbox: RemoteMailbox, message: FetchedMessage) -> None:
    if random.randrange(FORGETS_ONCE_IN) == 0:
        return
    end = mailbox.reject if random.randrange(REJECTS_ONCE_IN) == 0 else mailbox.acknowledge
    if late := end([message.receipt]):
        log.info("the demo's reader came too late", extra={"result": late[message.receipt]})
