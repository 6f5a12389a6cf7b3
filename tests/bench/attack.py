"""Attackers without a key beside a publisher of long messages: `python -P -m tests.bench.attack`.

Starts an `up`. For each kind of attack 40 clients do their worst, from a separate process, while a
publisher sends bodies of 100 KB, in turn. Prints the times of the publisher's answers; at the end
all kinds attack at once. `--seconds` is the time of each attack, `--only` names a kind.
"""

import argparse
import asyncio
import os
import random
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import orjson
import requests

from tests.support.product import Product
from tests.system.operation.installation import eventually

ATTACKERS = 40
BODY = orjson.dumps({"text": "x" * 100_000})
HOST = b"Host: 127.0.0.1\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
LONGEST_ANSWER_SECONDS = 60.0
MiB = 1024 * 1024

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Attack = Callable[[Connection], Awaitable[None]]


async def send(connection: Connection, head: bytes, body: bytes = b"") -> None:
    """Send a request, and read the beginning of the answer."""
    reader, writer = connection
    writer.write(head + b"\r\n" + body)
    await writer.drain()
    await reader.read(65_536)


async def cookies(connection: Connection) -> None:
    size = random.choice([8_000, 100_000])
    cookie = b'Cookie: a="' + b'\\"' * (size // 2 - 3) + b'"\r\n'
    if random.random() < 0.5:
        await send(
            connection, b"POST /x HTTP/1.1\r\n" + HOST + CHUNKED + cookie, b"1\r\nx\r\n0\r\n\r\n"
        )
    else:
        await send(connection, b"GET /admin/login/ HTTP/1.1\r\n" + HOST + cookie)


async def content_types(connection: Connection) -> None:
    size = random.choice([8_000, 200_000])
    kind = b"Content-Type: " + b"a;" * (size // 2 - 8) + b"\r\n"
    await send(
        connection,
        b"POST /admin/login/ HTTP/1.1\r\n" + HOST + kind + b"Content-Length: 1\r\n",
        b"x",
    )


async def unknown_keys(connection: Connection) -> None:
    key = f"Authorization: Bearer inturn_{secrets.token_hex(20)}\r\n".encode()
    path = random.choice([b"/api/v1/messages:batch", b"/api/v1/events/A.B/messages"])
    head = b"POST " + path + b" HTTP/1.1\r\n" + HOST + CHUNKED + key
    await send(connection, head, b"1\r\n{\r\n0\r\n\r\n")


async def stalled_bodies(connection: Connection) -> None:
    reader, writer = connection
    path = random.choice([b"/v4/inbox/A.B/none", b"/api/v1/events/A.B/messages", b"/admin/login/"])
    writer.write(b"POST " + path + b" HTTP/1.1\r\n" + HOST + b"Content-Length: %d\r\n\r\n" % MiB)
    writer.write(b"x" * (MiB - 1))
    await reader.read(1)


async def slow_readers(connection: Connection) -> None:
    _, writer = connection
    for _ in range(20):
        writer.write(b"GET /api/schema/ HTTP/1.1\r\n" + HOST + b"\r\n")
    await asyncio.sleep(LONGEST_ANSWER_SECONDS)


async def many_headers(connection: Connection) -> None:
    lines = b"".join(
        b"X-%d-%d: %s\r\n" % (number, random.getrandbits(60), b"y" * 600) for number in range(95)
    )
    await send(connection, b"GET /api/v1/messages HTTP/1.1\r\n" + HOST + lines)


async def slow_heads(connection: Connection) -> None:
    _, writer = connection
    writer.write(b"GET / HTTP/1.1\r\n")
    while True:
        writer.write(b"X-A: b\r\n")
        await writer.drain()
        await asyncio.sleep(0.5)


ATTACKS: dict[str, Attack] = {
    "cookies": cookies,
    "content types": content_types,
    "unknown keys": unknown_keys,
    "stalled bodies": stalled_bodies,
    "slow readers": slow_readers,
    "many headers": many_headers,
    "slow heads": slow_heads,
}


async def attack(port: int, kind: str) -> None:
    """Attack until this process is ended."""

    async def again_and_again() -> None:
        while True:
            try:
                connection = await asyncio.open_connection("127.0.0.1", port)
                await ATTACKS[kind](connection)
                connection[1].close()
            except OSError:
                await asyncio.sleep(0.05)

    await asyncio.gather(*(again_and_again() for _ in range(ATTACKERS)))


def publish(url: str, key: str, *, seconds: float) -> list[tuple[float, int]]:
    """Publish messages in turn; return the time and status of each answer, 0 if none."""
    results = []
    until = time.monotonic() + seconds
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    with requests.Session() as session:
        while time.monotonic() < until:
            began_at = time.monotonic()
            try:
                status = session.post(
                    url, BODY, headers=headers, timeout=LONGEST_ANSWER_SECONDS
                ).status_code
            except requests.RequestException:
                status = 0
            results.append((time.monotonic() - began_at, status))
            time.sleep(0.02)
    return results


def report(name: str, results: list[tuple[float, int]]) -> None:
    times = sorted(seconds for seconds, _ in results)
    accepted = sum(status == 202 for _, status in results)
    p50, p99 = times[len(times) // 2], times[min(len(times) * 99 // 100, len(times) - 1)]
    print(
        f"{name:>16}: {accepted} of {len(results)} accepted; "
        f"p50 {p50:.3f} s, p99 {p99:.3f} s, longest {times[-1]:.3f} s",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--only", choices=[*ATTACKS, "all"])
    parser.add_argument("--attack", choices=list(ATTACKS), help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.attack:
        asyncio.run(attack(options.port, options.attack))
        return
    with tempfile.TemporaryDirectory() as home:
        product = Product(Path(home))
        try:
            product.start()
            measure(product, seconds=options.seconds, only=options.only)
        finally:
            product.kill_all()


def measure(product: Product, *, seconds: float, only: str | None) -> None:
    flow = product.flow("Attacked")
    url = f"{product.rest.base_url}/api/v1/events/{flow.event_type}/messages"
    key = flow.publisher.key
    report("nobody", publish(url, key, seconds=min(seconds, 5.0)))
    rounds = {kind: [kind] for kind in ATTACKS} | {"all": list(ATTACKS)}
    for name, kinds in rounds.items():
        if only not in (None, name):
            continue
        attackers = [
            subprocess.Popen(
                [sys.executable, "-P", __file__, "--attack", kind, "--port", str(product.port)],
                env=os.environ,
            )
            for kind in kinds
        ]
        time.sleep(2.0)
        report(name, publish(url, key, seconds=seconds))
        for attacker in attackers:
            attacker.kill()
            attacker.wait()
        eventually(lambda: is_well(product), "the server answers again", seconds=600)


def is_well(product: Product) -> bool:
    try:
        return requests.get(f"{product.rest.base_url}/healthz", timeout=5).status_code == 200
    except requests.RequestException:
        return False


if __name__ == "__main__":
    main()
