"""Servers that accept connections and do not answer, from the first request or from a later one."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

# S3's answers about a folder without files: there is no such object, and none below.
_NO_OBJECT = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
_LISTED = b'<?xml version="1.0"?><ListBucketResult><KeyCount>0</KeyCount></ListBucketResult>'
_NONE_BELOW = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/xml\r\n"
    b"Content-Length: %d\r\n\r\n%s" % (len(_LISTED), _LISTED)
)


class SilentServer:
    """Answers so many requests as an empty bucket of S3 does, and no others."""

    def __init__(self, listening: socket.socket, *, answers: int) -> None:
        self._listening = listening
        self._left = answers
        self._lock = threading.Lock()
        self._accepted: list[socket.socket] = []
        self.address = f"127.0.0.1:{listening.getsockname()[1]}"
        # Set once a client waits for an answer.
        self.is_asked = threading.Event()

    def serve(self) -> None:
        """Accept connections until `close`, each with a separate thread."""
        threads = []
        with suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                self._accepted.append(connection)
                threads.append(threading.Thread(target=self._answer, args=[connection]))
                threads[-1].start()
        for connection in self._accepted:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join()
        for connection in self._accepted:
            connection.close()

    def close(self) -> None:
        # Otherwise a thread would go on to wait in `accept`.
        self._listening.shutdown(socket.SHUT_RDWR)

    def _answer(self, connection: socket.socket) -> None:
        with suppress(OSError):
            while request := connection.recv(65536):
                with self._lock:
                    self._left -= 1
                    is_answered = self._left >= 0
                if is_answered:
                    connection.sendall(_NO_OBJECT if request.startswith(b"HEAD ") else _NONE_BELOW)
                else:
                    self.is_asked.set()


@contextmanager
def silent_server(*, answers: int = 0) -> Iterator[SilentServer]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = SilentServer(listening, answers=answers)
        thread = threading.Thread(target=server.serve)
        thread.start()
        try:
            yield server
        finally:
            server.close()
            thread.join()


@contextmanager
def full_queue() -> Iterator[str]:
    """Yield the address of a server which does not even accept: the queue of clients is full."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        clients = [socket.socket() for _ in range(3)]
        for client in clients:
            client.setblocking(False)
            client.connect_ex(listening.getsockname())
        try:
            yield f"127.0.0.1:{listening.getsockname()[1]}"
        finally:
            for client in clients:
                client.close()
