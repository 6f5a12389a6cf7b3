"""A client of Inturn's REST API, for tests acting as users."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
import requests

Json = dict[str, Any]

SECONDS = 30


class RestRefusedError(AssertionError):
    """The answer was not 2xx."""

    def __init__(self, response: requests.Response) -> None:
        request = response.request
        super().__init__(
            f"{request.method} {request.url}: {response.status_code} {response.text[:2000]}"
        )
        self.response = response


@dataclass(slots=True)
class ProductClient:
    """Everything under `/api/v1/`, with a key. Not safe for several threads at a time."""

    base_url: str
    key: str
    _session: requests.Session = field(default_factory=requests.Session)

    def ask(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, Any] | None = None,
    ) -> requests.Response:
        """Return the answer, whatever the status."""
        url = path if path.startswith("http") else f"{self.base_url}/api/v1/{path}"
        return self._session.request(
            method,
            url,
            data=body,
            params=query,
            headers={"Authorization": f"Bearer {self.key}", **(headers or {})},
            timeout=SECONDS,
        )

    def get(self, path: str, **query: Any) -> Json:
        return _accepted(self.ask("GET", path, query=query))

    def post(self, path: str, content: Any = None) -> Json:
        return self._send("POST", path, content)

    def patch(self, path: str, content: Any) -> Json:
        return self._send("PATCH", path, content)

    def all(self, path: str, **query: Any) -> Iterator[Json]:
        """Yield the rows of a list, page by page."""
        page = self.get(path, limit=500, **query)
        yield from page["results"]
        while page["next"]:
            page = self.get(page["next"])
            yield from page["results"]

    def publish(self, event_type: str, body: bytes, **headers: str) -> Json:
        """Publish a message; underscores in header names become dashes, except FILTER_STRING."""
        named = {
            name if name.isupper() else name.replace("_", "-"): value
            for name, value in headers.items()
        }
        response = self.ask(
            "POST",
            f"events/{event_type}/messages",
            body=body,
            headers={"Content-Type": "application/json", **named},
        )
        return _accepted(response)

    def publish_batch(self, items: list[Json]) -> list[Json]:
        results: list[Json] = self.post("messages:batch", items)["results"]
        return results

    def _send(self, method: str, path: str, content: Any) -> Json:
        body = orjson.dumps({} if content is None else content)
        return _accepted(
            self.ask(method, path, body=body, headers={"Content-Type": "application/json"})
        )


def _accepted(response: requests.Response) -> Json:
    if not response.ok:
        raise RestRefusedError(response)
    content: Json = orjson.loads(response.content) if response.content else {}
    return content
