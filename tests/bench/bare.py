"""The bare loops to compare the product with: they send and do nothing else.

Each is a separate process, `python -m tests.bench.bare LOOP URL CONCURRENCY MESSAGES`. They measure
nothing: the receiver measures them, as it measures the product.
"""

import asyncio
import sys
import threading

import aiohttp
import django
import uvloop

from delivery.management.client.http import bare_session
from tests.bench.message import BODY, HEADERS

TABLE = "bench_commit"


async def post(url: str, concurrency: int, messages: int) -> None:
    """Post from as many coroutines as lanes, on keep-alive connections."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        await asyncio.gather(
            *(
                _post(session, f"{url}/bare/{lane}", messages // concurrency)
                for lane in range(concurrency)
            )
        )


async def post_and_commit(url: str, messages: int) -> None:
    """Post a message and commit a row durably, in turn."""
    from delivery.database.connections import connect_sender

    connection = await connect_sender("inturn bench")
    # The table is a constant.
    insert = f"INSERT INTO {TABLE} (id) VALUES (%s)"  # noqa: S608
    await connection.execute(
        f"CREATE TABLE IF NOT EXISTS {TABLE} (id bigint, at timestamptz DEFAULT now())"
    )
    async with connection, aiohttp.ClientSession() as session:
        for number in range(messages):
            await _post(session, f"{url}/bare/0", 1)
            await connection.execute(insert, (number,))


async def _post(session: aiohttp.ClientSession, url: str, messages: int) -> None:
    for _ in range(messages):
        async with session.post(url, data=BODY, headers=HEADERS) as response:
            await response.read()


def post_from_threads(url: str, concurrency: int, messages: int) -> None:
    """Post from threads with a `requests` session each."""
    threads = [
        threading.Thread(
            target=_post_from_thread, args=(f"{url}/bare/{number}", messages // concurrency)
        )
        for number in range(concurrency)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _post_from_thread(url: str, messages: int) -> None:
    with bare_session() as session:
        for _ in range(messages):
            session.post(url, data=BODY, headers=HEADERS, timeout=30)


def run(loop: str, url: str, concurrency: int, messages: int) -> None:
    match loop:
        case "aiohttp":
            uvloop.run(post(url, concurrency, messages))
        case "commit":
            django.setup()
            uvloop.run(post_and_commit(url, messages))
        case _:
            post_from_threads(url, concurrency, messages)


if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
