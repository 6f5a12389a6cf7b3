"""Texts for failed attempts, in our own words.

aiohttp's texts hold the whole URL, where receivers keep tokens, and bytes that the receiver sent.
An outcome's error is visible to everybody who may see deliveries or the journal, also without the
right to see payloads. So it holds neither: at most host and port.
"""

import logging
import os
import ssl

import aiohttp

from delivery.outcome import Fault
from delivery.senders.http.answer import UnreadableAnswerError
from delivery.states import OutcomeClass
from subscriptions.values.addresses import AddressRefusedError

log = logging.getLogger(__name__)


def fault_of(error: Exception, *, connect_seconds: float, seconds: float) -> Fault:
    """Classify an exception raised instead of an answer: the receiver's fault, or UNSENDABLE."""
    refused = _refusal(error)
    if refused is not None:
        return OutcomeClass.REFUSED_ADDRESS, str(refused)
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return OutcomeClass.TIMEOUT, f"no connection within {connect_seconds:g} s"
    if isinstance(error, TimeoutError):
        return OutcomeClass.TIMEOUT, f"no answer within {seconds:g} s"
    if isinstance(error, aiohttp.ClientSSLError | ssl.SSLError):
        return OutcomeClass.TLS, _without_tls(error)
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
    return error.excerpt if isinstance(error, UnreadableAnswerError) else b""


def _refusal(error: BaseException) -> AddressRefusedError | None:
    """Find the guard's refusal; aiohttp wraps it, once for several addresses."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, AddressRefusedError):
            return seen
        inner = getattr(seen, "os_error", None) or seen.__cause__ or seen.__context__
        if isinstance(inner, BaseExceptionGroup):
            inner = next(iter(inner.exceptions), None)
        seen = inner if inner is not seen else None
    return None


def _without_tls(error: BaseException) -> str:
    """Return the fault in OpenSSL's words."""
    place = (
        f" ({error.host}:{error.port})" if isinstance(error, aiohttp.ClientConnectorError) else ""
    )
    cause = getattr(error, "certificate_error", None) or getattr(error, "os_error", None) or error
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"its certificate cannot be verified: {cause.verify_message}{place}"
    reason = getattr(cause, "reason", None) or ""
    words = reason.replace("_", " ").lower()
    return f"no TLS connection: {words}{place}" if words else f"no TLS connection{place}"


def _unconnected(error: aiohttp.ClientConnectorError) -> str:
    place = f"({error.host}:{error.port})"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"{error.os_error} {place}"
    words = _of_system(error.os_error) or "none of its addresses can be connected to"
    return f"{words} {place}"


def _unanswered(error: Exception) -> str:
    words = _of_system(error) if isinstance(error, OSError) else ""
    return words or "the connection was closed before an answer came"


def _of_system(error: OSError) -> str:
    """Return the operating system's text, beginning in lower case; empty if there is none."""
    words = os.strerror(error.errno) if error.errno else ""
    return f"{words[:1].lower()}{words[1:]}"
