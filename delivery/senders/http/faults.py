"""Texts for failed attempts, in our own words.

aiohttp's texts hold the whole URL, where receivers keep tokens, and bytes that the receiver sent.
An outcome's error is visible to everybody who may see deliveries or the journal, also without the
right to see payloads. So it holds neither: at most host and port.
"""

import logging
import os
import ssl
from typing import TypeVar

import aiohttp

from delivery.outcome import Fault
from delivery.senders.http.answer import UnreadableAnswerError
from delivery.states import OutcomeClass
from subscriptions.values.addresses import AddressRefusedError

log = logging.getLogger(__name__)

Kind = TypeVar("Kind", bound=BaseException)

_ENDS = (ssl.SSLEOFError, ssl.SSLZeroReturnError)


def fault_of(error: Exception, *, connect_seconds: float, seconds: float) -> Fault:
    """Classify an exception raised instead of an answer: the receiver's fault, or UNSENDABLE."""
    if (refused := _found(error, AddressRefusedError)) is not None:
        return OutcomeClass.REFUSED_ADDRESS, str(refused)
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return OutcomeClass.TIMEOUT, f"no connection within {connect_seconds:g} s"
    if isinstance(error, TimeoutError):
        return OutcomeClass.TIMEOUT, f"no answer within {seconds:g} s"
    if (failed := _found(error, ssl.SSLError)) is not None and not _is_end(failed, of=error):
        return OutcomeClass.TLS, _without_tls(failed, error)
    if isinstance(error, UnreadableAnswerError):
        return OutcomeClass.UNREACHABLE, str(error)
    if isinstance(error, aiohttp.InvalidURL):
        return OutcomeClass.UNSENDABLE, "the endpoint is not a valid URL"
    if isinstance(error, aiohttp.ClientConnectorError):
        return OutcomeClass.UNREACHABLE, _unconnected(error)
    if isinstance(error, aiohttp.ClientError | OSError):
        return OutcomeClass.UNREACHABLE, _unanswered(error)
    log.error("cannot send: an error of Inturn's own", exc_info=error)
    return OutcomeClass.UNSENDABLE, f"Inturn could not send it: {type(error).__name__}, see its log"


def evidence(error: Exception) -> bytes:
    """Return an excerpt of the bytes sent instead of an answer.

    It is shown only to those who may see payloads.
    """
    for unreadable in (error.__cause__, error):
        if isinstance(unreadable, UnreadableAnswerError):
            return unreadable.excerpt
    return b""


def _found(error: BaseException, kind: type[Kind]) -> Kind | None:
    """Find an exception inside those that aiohttp and asyncio wrap around it.

    The guard's refusal is wrapped once for several addresses; a TLS alert that arrives after the
    handshake is an OSError of the connection.
    """
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, kind) and not isinstance(seen, aiohttp.ClientError):
            return seen
        inner = getattr(seen, "os_error", None) or seen.__cause__ or seen.__context__
        if isinstance(inner, BaseExceptionGroup):
            inner = next(iter(inner.exceptions), None)
        seen = inner if inner is not seen else None
    return None


def _is_end(failed: ssl.SSLError, *, of: Exception) -> bool:
    """True if the connection just ended, after it was made: TLS did not fail."""
    return isinstance(failed, _ENDS) and not isinstance(of, aiohttp.ClientConnectorError)


def _without_tls(failed: ssl.SSLError, error: Exception) -> str:
    """Return the fault in OpenSSL's words, and where the connection was to go."""
    place = (
        f" ({error.host}:{error.port})" if isinstance(error, aiohttp.ClientConnectorError) else ""
    )
    if isinstance(failed, ssl.SSLCertVerificationError):
        return f"its certificate cannot be verified: {failed.verify_message}{place}"
    words = (getattr(failed, "reason", None) or "").replace("_", " ").lower()
    return f"no TLS connection: {words}{place}" if words else f"no TLS connection{place}"


def _unconnected(error: aiohttp.ClientConnectorError) -> str:
    place = f"({error.host}:{error.port})"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"{error.os_error} {place}"
    words = _of_system(error.os_error) or "none of its addresses can be connected to"
    return f"{words} {place}"


def _unanswered(error: Exception) -> str:
    words = ""
    # The numbers of an SSLError are OpenSSL's.
    if isinstance(error, OSError) and _found(error, ssl.SSLError) is None:
        words = _of_system(error)
    return words or "the connection was closed before an answer came"


def _of_system(error: OSError) -> str:
    """Return the operating system's text, beginning in lower case; empty if there is none."""
    words = os.strerror(error.errno) if error.errno else ""
    return f"{words[:1].lower()}{words[1:]}"
