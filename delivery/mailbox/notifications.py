"""Hearing that there is something in a mailbox that somebody waits at: one connection a process, however many wait.

Notifications make it quick. Once a second one statement asks for all these mailboxes, for nobody tells of a
visibility that ended or of a delay that is over, and a notification may be lost, with its sender or while there was no connection.
"""

import asyncio
import logging

import psycopg

from delivery.database.connections import AWAY, MAILBOX_CHANNEL, connect
from delivery.database.statements import statement
from delivery.mailbox.waiters import Waiters

log = logging.getLogger(__name__)

APPLICATION_NAME = "inturn web mailboxes"
ASK_SECONDS = 1.0
RECONNECT_SECONDS = 0.5
# A server that does not answer for so long is given up: its machine may have vanished.
ANSWER_SECONDS = 5.0
_LOST = (*AWAY, TimeoutError)


class MailboxNews:
    """Tells `waiters` of news, from the first `start` on until `close`."""

    def __init__(self, waiters: Waiters) -> None:
        self._waiters = waiters
        self._task: asyncio.Task[None] | None = None
        self._is_told_lost = False

    def start(self) -> None:
        """Begin to listen, unless it does; needs the running event loop."""
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
                if not self._is_told_lost:
                    log.warning("cannot hear of mailboxes", extra={"error": str(error)})
                self._is_told_lost = True
            except Exception:
                # Whoever waits would wait in vain from now on.
                log.exception("cannot hear of mailboxes")
            await asyncio.sleep(RECONNECT_SECONDS)

    async def _listen(self) -> None:
        async with await connect(APPLICATION_NAME) as connection:
            await connection.execute(f"LISTEN {MAILBOX_CHANNEL}")
            self._is_told_lost = False
            while True:
                await self._ask(connection)
                async for notification in connection.notifies(timeout=ASK_SECONDS):
                    self._waiters.tell(understand(notification.payload))

    async def _ask(self, connection: psycopg.AsyncConnection) -> None:
        """Ask which mailboxes have something; also those who came while nobody listened learn of it here."""
        if not self._waiters.mailboxes:
            return
        async with asyncio.timeout(ANSWER_SECONDS):
            found = await connection.execute(
                statement("mailboxes_with_messages").encode(), {"subscribers": list(self._waiters.mailboxes)}
            )
            self._waiters.tell([subscriber for (subscriber,) in await found.fetchall()])


def understand(payload: str) -> list[int]:
    """Read a payload such as `12,34`; whoever may connect to the database may notify anything."""
    return [int(id) for id in payload.split(",") if id.isdecimal()]
