"""Servers with improper answers, or which never accept a connection."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

BLANK_LINE = b"\r\n\r\n"


@contextlib.contextmanager
def raw_server(answer: Callable[[socket.socket], None]) -> Iterator[int]:
    """Call `answer` with each connection in a separate thread; yield the port."""
    threads: list[threading.Thread] = []

    def talk(connection: socket.socket) -> None:
        # The client may close the connection early.
        with connection, contextlib.suppress(OSError):
            connection.settimeout(30)
            answer(connection)

    def accept(listening: socket.socket) -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            threads.append(threading.Thread(target=talk, args=(connection,)))
            threads[-1].start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        accepting = threading.Thread(target=accept, args=(listening,))
        accepting.start()
        try:
            yield listening.getsockname()[1]
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            accepting.join()
            for thread in threads:
                thread.join()


def read_header(connection: socket.socket) -> None:
    """Read a request up to the end of the header."""
    request = b""
    while BLANK_LINE not in request and (part := connection.recv(65_536)):
        request += part


@contextlib.contextmanager
def full_queues(*addresses: str, port: int) -> Iterator[None]:
    """Listen at the addresses without accepting: no further connection gets an answer."""
    with contextlib.ExitStack() as stack:
        for address in addresses:
            listening = stack.enter_context(socket.socket())
            listening.bind((address, port))
            listening.listen(0)
            for _ in range(4):
                waiting = stack.enter_context(socket.socket())
                waiting.setblocking(False)
                waiting.connect_ex((address, port))
        yield
