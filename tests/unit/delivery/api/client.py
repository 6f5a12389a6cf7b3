"""A caller of the API within the process, with one key."""

from collections.abc import Mapping
from typing import Any

import orjson
from django.test import Client

from subscriptions.models import Scope
from tests.support import factories

Json = dict[str, Any]
Refusal = Mapping[str, Any]


class ApiAnswer:
    """An answer: status, headers and the body, parsed if it is JSON."""

    def __init__(self, response: Any) -> None:
        self.status: int = response.status_code
        self.headers = response.headers
        self.content_type: str = response.headers.get("Content-Type", "")
        self.content: bytes = response.content
        is_json = "json" in self.content_type
        self.body: Any = orjson.loads(response.content) if response.content and is_json else None

    def __repr__(self) -> str:
        return f"{self.status} {self.content.decode()[:1000]}"


class Caller:
    def __init__(self, key: str | None) -> None:
        self._client = Client()
        self._headers = {"authorization": f"Bearer {key}"} if key is not None else {}

    def ask(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        *,
        content_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
    ) -> ApiAnswer:
        url = path if path.startswith(("http", "/")) else f"/api/v1/{path}"
        sent = self._headers | dict(headers or {})
        return ApiAnswer(
            self._client.generic(method, url, data=body, content_type=content_type, headers=sent)
        )

    def get(self, path: str) -> ApiAnswer:
        return self.ask("GET", path)

    def post(self, path: str, content: Any = None) -> ApiAnswer:
        return self.ask("POST", path, b"" if content is None else orjson.dumps(content))

    def patch(self, path: str, content: Any) -> ApiAnswer:
        return self.ask("PATCH", path, orjson.dumps(content))

    def delete(self, path: str) -> ApiAnswer:
        return self.ask("DELETE", path)

    def publish(self, event_type: str, body: bytes = b"{}", **headers: str) -> ApiAnswer:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.ask("POST", f"events/{event_type}/messages", body, headers=named)


def caller(scope: Scope = Scope.MANAGE, **fields: Any) -> Caller:
    """Create a key of this scope, and a caller with it."""
    return Caller(factories.api_key(scope, **fields)[1])


def created(answer: ApiAnswer) -> Json:
    assert answer.status == 201, answer
    body: Json = answer.body
    return body


def refused(answer: ApiAnswer, status: int, code: str | None = None) -> Json:
    """Return the problem document of an answer that has to be one, of this status (and code)."""
    assert answer.status == status, answer
    assert answer.content_type == "application/problem+json"
    problem: Json = answer.body
    assert problem["status"] == status
    assert problem["detail"]
    assert problem["title"]
    assert problem["type"].startswith("urn:inturn:problem:")
    if code is not None:
        assert problem["type"] == f"urn:inturn:problem:{code}"
    assert b"Traceback" not in answer.content
    return problem


def fields_of(problem: Refusal) -> set[str]:
    return {error["field"] for error in problem["errors"]}
