"""Calls of Inturn itself with `requests`, for commands; the only importing module."""

from collections.abc import Mapping

import requests

CONNECT_SECONDS = 5.0
# How long a call waits for each part of the answer.
ASKED_SECONDS = 60.0

Response = requests.Response


class NoAnswerError(Exception):
    """No answer came; the message is for a person."""


def call_trusted(
    session: requests.Session,
    method: str,
    url: str,
    *,
    body: bytes | None,
    headers: Mapping[str, str | bytes],
) -> Response:
    """Call a trusted server, such as Inturn itself; raise NoAnswerError."""
    timeout = (CONNECT_SECONDS, ASKED_SECONDS)
    try:
        return session.request(
            method, url, data=body, headers=headers, timeout=timeout, allow_redirects=False
        )
    except requests.RequestException as error:
        raise NoAnswerError(_reason(error)) from error


def bare_session() -> requests.Session:
    """Return an unguarded session of `requests`, for calls of Inturn itself."""
    return requests.Session()


def _reason(error: requests.RequestException) -> str:
    if isinstance(error, requests.Timeout):
        return "no answer in time"
    if isinstance(error, requests.ConnectionError):
        return "the connection is refused or was closed; is it running there?"
    return str(error)
