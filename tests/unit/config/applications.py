"""WSGI applications that granian serves in tests, directly and through the bridge."""

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from config.web.bridge import Bridge
from config.web.request_bodies import Bounds

MAX_BODY_BYTES = 1024 * 1024
THREADS = 4
BLOCK = b"0123456789abcdef" * 256
logging.basicConfig(level=logging.WARNING)

Start = Callable[..., Any]


def echo(environ: dict[str, Any], start_response: Start) -> list[bytes]:
    """Answer with the server's description of the request."""
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    texts = {name: value for name, value in environ.items() if isinstance(value, str | bool)}
    start_response("200 OK", [("Content-Type", "application/json")])
    return [orjson.dumps(texts | {"body": body.decode("latin-1")})]


class Closing:
    """An iterable of body parts that records whether it was closed."""

    closed = 0

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)

    def __iter__(self) -> Iterator[bytes]:
        return self._pieces

    def close(self) -> None:
        Closing.closed += 1


def _broken() -> Iterator[bytes]:
    yield b"begun"
    raise ValueError("in the middle")


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
            return Closing(BLOCK for _ in range(1000))
        case "/endless":
            start_response("200 OK", headers)
            return Closing(iter(lambda: BLOCK, b""))
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


async def _key_of(environ: dict[str, Any]) -> str:
    key: str = environ.get("HTTP_AUTHORIZATION", "")
    return key


AMPLE = Bounds(
    limit_of=lambda _path: MAX_BODY_BYTES,
    client_of=_key_of,
    capacity=THREADS * MAX_BODY_BYTES,
    share=THREADS * MAX_BODY_BYTES,
    capacity_of_strangers=THREADS * MAX_BODY_BYTES,
)
# Slow senders time out soon, and two long bodies of unknown senders do not fit.
TIGHT = Bounds(
    limit_of=lambda _path: MAX_BODY_BYTES,
    client_of=_key_of,
    capacity=2 * MAX_BODY_BYTES,
    share=200_000,
    capacity_of_strangers=150_000,
    grace_seconds=0.5,
    bytes_per_second=1_000_000,
)

bridged_echo = Bridge(echo, threads=THREADS, bounds=AMPLE, most_at_a_mailbox=10)
bridged_answers = Bridge(answers, threads=THREADS, bounds=AMPLE, most_at_a_mailbox=10)
bridged_late = Bridge(is_late, threads=THREADS, bounds=AMPLE, most_at_a_mailbox=10)
bridged_tight = Bridge(echo, threads=THREADS, bounds=TIGHT, most_at_a_mailbox=10)
patient_tight = Bridge(
    echo, threads=THREADS, bounds=replace(TIGHT, grace_seconds=60), most_at_a_mailbox=10
)
# No client may wait at a mailbox of this one.
bridged_full = Bridge(waits, threads=THREADS, bounds=AMPLE, most_at_a_mailbox=0)
