"""Notifications of new messages in mailboxes: a connection per process for all waiting clients.

Notifications keep the latency low. In addition a statement per second queries all mailboxes with
waiting clients: the end of a visibility or of a delay sends no notification, and a notification may
be lost with the sending process or while there was no connection.
"""

import asyncio
import logging

import psycopg

from delivery.database.connections import AWAY, MAILBOX_CHANNEL, connect_sender
from delivery.database.statements import statement
from delivery.mailbox.waiters import Waiters

log = logging.getLogger(__name__)

APPLICATION_NAME = "inturn web mailboxes"
QUERY_SECONDS = 1.0
RECONNECT_SECONDS = 0.5
# A server silent for this time counts as lost: the machine may have vanished.
ANSWER_SECONDS = 5.0
_LOST = (*AWAY, TimeoutError)


class MailboxNotifications:
    """Notifies `waiters` of new messages, from the first `start` until `close`."""

    def __init__(self, waiters: Waiters) -> None:
        self._waiters = waiters
        self._task: asyncio.Task[None] | None = None
        self._is_loss_logged = False

    def start(self) -> None:
        """Start listening, unless it has started; needs the running event loop."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._listen_for_ever())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _listen_for_ever(self) -> None:
        while True:
            try:
                await self._listen()
            except _LOST as error:
                if not self._is_loss_logged:
                    log.warning("cannot listen for new messages", extra={"error": str(error)})
                self._is_loss_logged = True
            except Exception:
                # Without this the waiting clients would never be notified again.
                log.exception("cannot listen for new messages")
            await asyncio.sleep(RECONNECT_SECONDS)

    async def _listen(self) -> None:
        async with await connect_sender(APPLICATION_NAME) as connection:
            await connection.execute(f"LISTEN {MAILBOX_CHANNEL}")
            self._is_loss_logged = False
            while True:
                await self._notify_unread(connection)
                async for notification in connection.notifies(timeout=QUERY_SECONDS):
                    self._waiters.notify(mailboxes_of_payload(notification.payload))

    async def _notify_unread(self, connection: psycopg.AsyncConnection) -> None:
        """Query which mailboxes have messages.

        This also finds notifications from while no connection listened.
        """
        if not self._waiters.mailboxes:
            return
        async with asyncio.timeout(ANSWER_SECONDS):
            cursor = await connection.execute(
                statement("mailboxes_with_messages").encode(),
                {"subscribers": list(self._waiters.mailboxes)},
            )
            self._waiters.notify([subscriber for (subscriber,) in await cursor.fetchall()])


def mailboxes_of_payload(payload: str) -> list[int]:
    """Parse a payload such as `12,34`, and ignore all else: any database user can send one."""
    return [int(id) for id in payload.split(",") if id.isdecimal()]
