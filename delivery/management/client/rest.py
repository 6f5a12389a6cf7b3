"""A client of Inturn's own REST API, for commands."""

import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

import orjson

from delivery.management.client.http import NoAnswerError, Response, bare_session, call_trusted
from subscriptions.values.schedules import doubling_pause

# Tries of a call with an answer 429 or 503 (repeat later), before it fails.
MAX_TRIES = 10
MAX_RETRY_AFTER_SECONDS = 60.0
# Tries of a call without an answer: with pauses of 1, 2, 4 and 8 s it outlasts a restart.
MAX_TRIES_UNANSWERED = 5


class ClientError(Exception):
    """Inturn did not fulfil a request; the message is for a person."""


class UnreachableError(ClientError):
    """No answer came: whether the request was fulfilled is unknown."""


class RefusedError(ClientError):
    """The answer was an error; `problem` is the problem document, empty if there was none."""

    def __init__(
        self, status: int, problem: Mapping[str, Any], *, retry_after_seconds: float = 1.0
    ) -> None:
        super().__init__(
            f"{problem.get('detail') or problem.get('title') or 'no explanation'} ({status})"
        )
        self.status = status
        self.problem = problem
        self.retry_after_seconds = retry_after_seconds


class RestClient:
    """A key's calls, on persistent connections. Use it as a context manager.

    A call answered with 429 is repeated after Retry-After, as nothing was done. After 503, or
    without an answer, it may have been done: only a repeatable call is repeated then. `pause` waits
    between the tries.
    """

    def __init__(
        self, base_url: str, *, key: str, pause: Callable[[float], None] = time.sleep
    ) -> None:
        self._base_url = f"{base_url.rstrip('/')}/api/v1"
        self._pause = pause
        self._session = bare_session()
        # Ignore the user's environment, such as a proxy.
        self._session.trust_env = False
        self._session.headers["Authorization"] = f"Bearer {key}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._session.close()

    def get(self, path: str) -> Any:
        return self.call("GET", path, is_repeatable=True)

    def post(self, path: str, body: Any = None) -> Any:
        return self.call("POST", path, body=orjson.dumps(body))

    def patch(self, path: str, body: Any) -> Any:
        return self.call("PATCH", path, body=orjson.dumps(body))

    def delete(self, path: str) -> None:
        self.call("DELETE", path)

    def call(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        is_repeatable: bool = False,
    ) -> Any:
        """Return the answer's JSON; raise ClientError.

        `is_repeatable`: to do it twice is the same as once, as when each message has an idempotency
        key.
        """
        tries = 1
        while True:
            try:
                return self._parsed(self.content(method, path, body=body, headers=headers))
            except (RefusedError, UnreachableError) as error:
                seconds = _seconds_before_repeating(error, tries=tries, is_repeatable=is_repeatable)
                if seconds is None:
                    raise
            self._pause(seconds)
            tries += 1

    def content(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        """Return the answer's bytes, empty if it has none; raise ClientError.

        Nothing is repeated.
        """
        try:
            response = call_trusted(
                self._session,
                method,
                f"{self._base_url}/{path}",
                body=body,
                headers={"Content-Type": "application/json"} | dict(headers or {}),
            )
        except NoAnswerError as error:
            raise UnreachableError(f"{self._base_url} does not answer: {error}") from error
        if response.status_code // 100 != 2:
            raise _refusal(response)
        return response.content

    def _parsed(self, content: bytes) -> Any:
        try:
            return orjson.loads(content) if content else None
        except orjson.JSONDecodeError as error:
            raise ClientError(
                f"{self._base_url} does not answer as Inturn does; is it another?"
            ) from error


def _seconds_before_repeating(
    error: RefusedError | UnreachableError, *, tries: int, is_repeatable: bool
) -> float | None:
    """Return the seconds until the next try, None if there is none."""
    if isinstance(error, UnreachableError):
        pause = doubling_pause(1.0, failures=tries, longest=MAX_RETRY_AFTER_SECONDS)
        return pause if is_repeatable and tries < MAX_TRIES_UNANSWERED else None
    may_repeat = error.status == 429 or (error.status == 503 and is_repeatable)
    seconds = min(error.retry_after_seconds, MAX_RETRY_AFTER_SECONDS)
    return seconds if may_repeat and tries < MAX_TRIES else None


def _refusal(response: Response) -> RefusedError:
    try:
        problem = orjson.loads(response.content)
    except orjson.JSONDecodeError:
        problem = {"title": response.reason}
    retry_after = response.headers.get("Retry-After", "")
    return RefusedError(
        response.status_code,
        problem if isinstance(problem, dict) else {},
        retry_after_seconds=float(retry_after) if retry_after.isdecimal() else 1.0,
    )
