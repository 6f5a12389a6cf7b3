"""WSGI applications that granian serves in tests, directly and through the bridge."""

import fcntl
import logging
import os
import resource
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from config.web import long_answers
from config.web.bridge import Bridge
from config.web.request_bodies import Bounds, Requester

MAX_BODY_BYTES = 1024 * 1024
THREADS = 4
BLOCK = b"0123456789abcdef" * 256
# Longer than the buffers of a connection.
BULK = BLOCK * 4000
logging.basicConfig(level=logging.WARNING)

Start = Callable[..., Any]


def echo(environ: dict[str, Any], start_response: Start) -> list[bytes]:
    """Answer with the server's description of the request."""
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    texts = {name: value for name, value in environ.items() if isinstance(value, str | bool)}
    start_response("200 OK", [("Content-Type", "application/json")])
    return [orjson.dumps(texts | {"body": body.decode("latin-1")})]


class Closing:
    """An iterable of body parts that records whether it was closed; `streaming` as in Django."""

    closed = 0

    def __init__(self, pieces: Iterable[bytes], *, streaming: bool = False) -> None:
        self._pieces = iter(pieces)
        self.streaming = streaming

    def __iter__(self) -> Iterator[bytes]:
        return self._pieces

    def close(self) -> None:
        Closing.closed += 1


def _broken(blocks: int = 1) -> Iterator[bytes]:
    for _ in range(blocks):
        yield BLOCK
    raise ValueError("in the middle")


_produced: list[None] = []


def _counted() -> Iterator[bytes]:
    while True:
        _produced.append(None)
        yield BLOCK


def answers(environ: dict[str, Any], start_response: Start) -> Iterable[bytes]:
    """Answer each path in a different way."""
    headers = [("Content-Type", "text/plain"), ("Set-Cookie", "a=1"), ("Set-Cookie", "b=2")]
    match environ["PATH_INFO"]:
        case "/raises":
            raise ValueError("never answered")
        case "/exits":
            raise SystemExit
        case "/breaks":
            start_response("200 OK", headers)
            return Closing(_broken())
        case "/closed":
            start_response("200 OK", headers)
            return [str(Closing.closed).encode()]
        case "/large":
            start_response("200 OK", [*headers, ("Content-Length", str(len(BLOCK) * 1000))])
            return Closing((BLOCK for _ in range(1000)), streaming=True)
        case "/nothing":
            start_response("204 No Content", headers)
            return Closing([])
        case "/leaks":
            start_response("200 OK", [*headers, ("Inturn-Wait", "1")])
            return Closing([b"answered"])
        case "/read":
            start_response("200 OK", headers)
            return [Path(environ["QUERY_STRING"]).read_bytes()]
    start_response("418 I'm a teapot", headers)
    return Closing([b"short ", b"and ", b"stout"])


def _limit_descriptors(most: int) -> list[bytes]:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return []


def _broken_without_descriptors() -> Iterator[bytes]:
    yield from [BLOCK] * 1000
    _limit_descriptors(3)
    raise ValueError("in the middle")


def lasts(environ: dict[str, Any], start_response: Start) -> Iterable[bytes]:
    """Answer without end, or break a long answer off, or report the blocks produced."""
    long: dict[str, Callable[[], Iterable[bytes]]] = {
        "/endless": lambda: Closing(_counted(), streaming=True),
        "/breaks-late": lambda: Closing(_broken(1000), streaming=True),
        "/breaks-crowded": lambda: Closing(_broken_without_descriptors(), streaming=True),
        "/limit": lambda: [str(resource.getrlimit(resource.RLIMIT_NOFILE)[0]).encode()],
        "/breaks-early": lambda: Closing(_broken(), streaming=True),
        "/streamed": lambda: Closing(
            (BLOCK for _ in range(1 if environ["QUERY_STRING"] else 75)), streaming=True
        ),
        "/bounded": lambda: Closing([BULK]),
        "/descriptors": lambda: _limit_descriptors(int(environ["QUERY_STRING"])),
        "/produced": lambda: [str(len(_produced)).encode()],
    }
    if environ["PATH_INFO"] not in long:
        return answers(environ, start_response)
    start_response("200 OK", [("Content-Type", "text/plain")])
    return long[environ["PATH_INFO"]]()


def waits(_environ: dict[str, Any], start_response: Start) -> Iterable[bytes]:
    """Answer that a mailbox is empty."""
    start_response("204 No Content", [("Inturn-Wait", "1")])
    return []


def is_late(environ: dict[str, Any], start_response: Start) -> Iterable[bytes]:
    """Answer after the seconds in the query, or report the number of such answers."""
    if environ["PATH_INFO"] == "/begun":
        start_response("200 OK", [])
        return [str(len(_begun)).encode()]
    _begun.append(environ["QUERY_STRING"])
    start_response("202 Accepted", [("Inturn-Answer-After", environ["QUERY_STRING"])])
    return [b"at ", b"last"]


_begun: list[str] = []


def holds(environ: dict[str, Any], start_response: Start) -> list[bytes]:
    """Answer `/held` once `/release` is asked for; others get the number of held requests."""
    match environ["PATH_INFO"]:
        case "/held":
            _held.append(None)
            _released.wait()
        case "/release":
            _released.set()
    start_response("200 OK", [])
    return [str(len(_held)).encode()]


_held: list[None] = []
_released = threading.Event()


class ByHeader:
    """Takes every Authorization for a valid one, and X-Forwarded-For for the origin."""

    async def identify(self, environ: dict[str, Any]) -> Requester:
        return self.remembered(environ)

    def remembered(self, environ: dict[str, Any]) -> Requester:
        key: str = environ.get("HTTP_AUTHORIZATION", "")
        return Requester(key or environ.get("HTTP_X_FORWARDED_FOR", ""), is_known=bool(key))


class Unremembered(ByHeader):
    """Knows nobody before looking the credential up."""

    async def identify(self, environ: dict[str, Any]) -> Requester:
        return super().remembered(environ)

    def remembered(self, environ: dict[str, Any]) -> Requester:
        return Requester("somebody", is_known=False)


AMPLE = Bounds(
    limit_of=lambda _path: MAX_BODY_BYTES,
    requesters=ByHeader(),
    capacity=THREADS * MAX_BODY_BYTES,
    share=THREADS * MAX_BODY_BYTES,
    anonymous_capacity=THREADS * MAX_BODY_BYTES,
    anonymous_share=THREADS * MAX_BODY_BYTES,
)
# Slow requesters time out soon, and two long anonymous bodies do not fit.
TIGHT = Bounds(
    limit_of=lambda _path: MAX_BODY_BYTES,
    requesters=ByHeader(),
    capacity=2 * MAX_BODY_BYTES,
    share=200_000,
    anonymous_capacity=150_000,
    anonymous_share=100_000,
    grace_seconds=0.5,
    bytes_per_second=1_000_000,
)

LARGE_PIPES = "LARGE_PIPES"
_pipe = os.pipe


def _large_pipe() -> tuple[int, int]:
    reading, writing = _pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, MAX_BODY_BYTES)
    return reading, writing


if LARGE_PIPES in os.environ:
    # As on a system with pages of 64 KiB, and a limit that keeps pipes from being made smaller.
    vars(os)["pipe"] = _large_pipe
    vars(long_answers)["PIPE_BYTES"] = MAX_BODY_BYTES

bridged_echo = Bridge(echo, threads=THREADS, bounds=AMPLE, most_at_a_mailbox=10)
bridged_prefixed = Bridge(
    echo, threads=THREADS, bounds=replace(AMPLE, cookie_prefix="inturn_"), most_at_a_mailbox=10
)
bridged_answers = Bridge(lasts, threads=THREADS, bounds=AMPLE, most_at_a_mailbox=10)
bridged_impatient = Bridge(
    lasts,
    threads=THREADS,
    bounds=replace(AMPLE, stalled_seconds=0.5),
    most_at_a_mailbox=10,
)
bridged_unremembered = Bridge(
    holds,
    threads=THREADS,
    bounds=replace(AMPLE, requesters=Unremembered(), anonymous_threads=THREADS // 2),
    most_at_a_mailbox=10,
)
bridged_late = Bridge(is_late, threads=THREADS, bounds=AMPLE, most_at_a_mailbox=10)
bridged_tight = Bridge(echo, threads=THREADS, bounds=TIGHT, most_at_a_mailbox=10)
patient_tight = Bridge(
    echo, threads=THREADS, bounds=replace(TIGHT, grace_seconds=600), most_at_a_mailbox=10
)
# No client may wait at a mailbox of this one.
bridged_full = Bridge(waits, threads=THREADS, bounds=AMPLE, most_at_a_mailbox=0)
