"""A real DNS server: it resolves some names and leaves other queries unanswered."""

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

_A = 1
_NAME_OF_THE_QUESTION = b"\xc0\x0c"


@dataclass
class NameServer:
    """`asked` lists the queried names, in order."""

    address: str
    asked: list[str] = field(default_factory=list)
    _news: threading.Condition = field(default_factory=threading.Condition)

    def wait_for(self, enough: Callable[[Sequence[str]], bool]) -> None:
        with self._news:
            assert self._news.wait_for(lambda: enough(self.asked), timeout=30)

    def hear(self, name: str) -> None:
        with self._news:
            self.asked.append(name)
            self._news.notify_all()


@contextlib.contextmanager
def name_server(known: Mapping[str, Sequence[str]]) -> Iterator[NameServer]:
    """Serve IPv4 addresses by name; a name without addresses does not exist."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as serving:
        serving.bind(("127.0.0.1", 0))
        server = NameServer(f"127.0.0.1:{serving.getsockname()[1]}")
        thread = threading.Thread(target=_serve, args=(serving, server, known))
        thread.start()
        try:
            yield server
        finally:
            # An empty datagram is no query: it ends the thread.
            serving.sendto(b"", serving.getsockname())
            thread.join()


def _serve(serving: socket.socket, server: NameServer, known: Mapping[str, Sequence[str]]) -> None:
    while True:
        question, asker = serving.recvfrom(4096)
        if not question:
            return
        name, kind, end = _read(question)
        server.hear(name)
        if name in known:
            addresses = known[name] if kind == _A else ()
            serving.sendto(_answer(question, end, addresses, exists=bool(known[name])), asker)


def _read(question: bytes) -> tuple[str, int, int]:
    labels, at = [], 12
    while length := question[at]:
        labels.append(question[at + 1 : at + 1 + length].decode())
        at += 1 + length
    (kind,) = struct.unpack_from(">H", question, at + 1)
    return ".".join(labels).lower(), kind, at + 5


def _answer(question: bytes, end: int, addresses: Sequence[str], *, exists: bool) -> bytes:
    flags = 0x8180 if exists else 0x8183
    header = question[:2] + struct.pack(">5H", flags, 1, len(addresses), 0, 0)
    records = (
        _NAME_OF_THE_QUESTION + struct.pack(">HHIH", _A, 1, 0, 4) + socket.inet_aton(address)
        for address in addresses
    )
    return header + question[12:end] + b"".join(records)
