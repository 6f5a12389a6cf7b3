"""The end of a listening port of asyncio."""

import asyncio


async def close_port(listener: asyncio.Server) -> None:
    """Close the port; all accepted connections are known to the protocol then.

    A server closed between accept() and the start of the transport drops the transport without
    closing it (CPython issue 109564): the warning fails whichever test runs when it is collected.
    So accepting ends first, and the start takes two rounds of the loop.
    """
    loop = asyncio.get_running_loop()
    for listening in listener.sockets:
        loop.remove_reader(listening)
    for _ in range(2):
        await asyncio.sleep(0)
    listener.close()
