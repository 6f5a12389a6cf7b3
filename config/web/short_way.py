"""Requests answered without Django: plain posts and batches, which `delivery.ingest` stores."""

import time
from http import HTTPStatus

from config.web.answers import Header
from config.web.environ import Environ
from config.web.metrics import observe_request
from delivery.ingest.intake import Intake
from delivery.tracing.traces import flush_traces


class Publishing:
    """The fast path of one web process. Its requests are counted like those of the view."""

    def __init__(self) -> None:
        self._intake = Intake()

    async def answer(self, environ: Environ, body: bytes) -> tuple[int, list[Header], bytes] | None:
        began_at = time.perf_counter()
        published = await self._intake.publish(environ, body)
        if published is None:
            return None
        observe_request(published.view, "POST", HTTPStatus.ACCEPTED, time.perf_counter() - began_at)
        return HTTPStatus.ACCEPTED, published.headers, published.body

    def close(self) -> None:
        self._intake.close()
        flush_traces()
