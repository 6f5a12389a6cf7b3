"""A client of the Event Queue, as those of the old product call it."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urljoin

from tests.unit.delivery.api.client import ApiAnswer, Caller, Json

VENDOR_JSON = "application/vnd.comoyo.api-v20120202+json"
NEXT = "/event/queue/q-17/next"


@dataclass(frozen=True, slots=True)
class QueueClient:
    """A client with Basic credentials that only follows links."""

    name: str
    password: str
    _caller: Caller = field(default_factory=lambda: Caller(None))

    def ask(
        self, method: str, path: str, body: bytes = b"{}", headers: Mapping[str, str] | None = None
    ) -> ApiAnswer:
        credentials = base64.b64encode(f"{self.name}:{self.password}".encode()).decode()
        sent = {"authorization": f"Basic {credentials}", "accept": VENDOR_JSON} | dict(
            headers or {}
        )
        return self._caller.ask(method, path, body, content_type=VENDOR_JSON, headers=sent)

    def next(self) -> Json:
        answer = self.ask("POST", NEXT)
        assert answer.status == 200, answer
        body: Json = answer.body
        return body

    def ack(self, message: Json) -> ApiAnswer:
        (link,) = [link for link in message["link"] if link["rel"] == "ack"]
        return self.ask("POST", urljoin(NEXT, link["href"]))
