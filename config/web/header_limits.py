"""Limits of a request's address and headers, checked before anything reads their values.

Django and the libraries parse headers with code of quadratic time in places: `http.cookies` of
Python before 3.11.10 takes 28 seconds for a cookie of 200 KB (CVE-2024-7592). So values that are
parsed are limited to what other web servers take. The headers of a message are stored as they are,
and may be as long as `delivery.incoming.headers` allows. So may all cookies together, because those
of a proxy or of the domain's other sites are no fault of the user; nothing parses them.

granian refuses a head longer than the buffer, and more than 100 headers, with a bare 431. The
buffer is larger than these limits, so that a client normally gets a sentence.
"""

from config.web.cookies import own_cookies
from config.web.environ import Environ
from delivery.incoming.headers import MAX_HEADER_BYTES
from delivery.incoming.problems import Problem

MAX_ADDRESS_BYTES = 32 * 1024
MAX_PARSED_BYTES = 8 * 1024
MAX_TOTAL_BYTES = 64 * 1024
# Django's parser of media types takes 0.1 s for 8 KiB.
MAX_MEDIA_TYPE_BYTES = 1024
_MEDIA_TYPES = ("CONTENT_TYPE", "HTTP_ACCEPT")
PARSED = frozenset(
    {
        "CONTENT_LENGTH",
        "CONTENT_TYPE",
        "HTTP_ACCEPT",
        "HTTP_ACCEPT_CHARSET",
        "HTTP_ACCEPT_ENCODING",
        "HTTP_ACCEPT_LANGUAGE",
        "HTTP_AUTHORIZATION",
        "HTTP_BAGGAGE",
        "HTTP_CONNECTION",
        "HTTP_FORWARDED",
        "HTTP_HOST",
        "HTTP_IF_MATCH",
        "HTTP_IF_MODIFIED_SINCE",
        "HTTP_IF_NONE_MATCH",
        "HTTP_IF_RANGE",
        "HTTP_IF_UNMODIFIED_SINCE",
        "HTTP_ORIGIN",
        "HTTP_RANGE",
        "HTTP_REFERER",
        "HTTP_SESSIONID",
        "HTTP_TRACEPARENT",
        "HTTP_TRACESTATE",
        "HTTP_TRANSFER_ENCODING",
        "HTTP_VIA",
        "HTTP_X_FORWARDED_FOR",
        "HTTP_X_FORWARDED_HOST",
        "HTTP_X_FORWARDED_PROTO",
        "HTTP_X_USER_TOKEN",
    }
)


def check_head(environ: Environ, *, cookie_prefix: str) -> None:
    """Raise Problem, 414 or 431, if the address or a header is too long; drop foreign cookies."""
    _check_lengths(environ)
    if cookies := environ.get("HTTP_COOKIE"):
        environ["HTTP_COOKIE"] = own = own_cookies(cookies, prefix=cookie_prefix)
        if len(own) > MAX_PARSED_BYTES:
            detail = (
                f"Inturn's own cookies have at most {MAX_PARSED_BYTES} bytes; these {len(own)}. "
                "Delete the cookies of this site."
            )
            raise closing(Problem(431, "headers-too-large", detail))


def _check_lengths(environ: Environ) -> None:
    if len(environ["PATH_INFO"]) + len(environ["QUERY_STRING"]) > MAX_ADDRESS_BYTES:
        detail = f"An address has at most {MAX_ADDRESS_BYTES} bytes, with its query."
        raise closing(Problem(414, "address-too-long", detail))
    lengths = {
        key: len(value)
        for key, value in environ.items()
        if key.startswith("HTTP_") or key in PARSED
    }
    total = sum(lengths.values()) + sum(map(len, lengths))
    if total <= MAX_MEDIA_TYPE_BYTES:
        return
    for key, length in lengths.items():
        if length > (most := _most_of(key)):
            raise _too_large(f"The header {_name(key)} has at most {most} bytes; this one {length}")
    if total > MAX_TOTAL_BYTES:
        raise _too_large(f"All headers have at most {MAX_TOTAL_BYTES} bytes together")


def _most_of(key: str) -> int:
    if key in _MEDIA_TYPES:
        return MAX_MEDIA_TYPE_BYTES
    return MAX_PARSED_BYTES if key in PARSED else MAX_HEADER_BYTES


def _too_large(sentence: str) -> Problem:
    detail = f"{sentence}. Shorten them, or put the rest into the body."
    return closing(Problem(431, "headers-too-large", detail))


def closing(problem: Problem) -> Problem:
    """Close the connection after the answer, because the body is not read."""
    problem.headers["Connection"] = "close"
    return problem


def _name(key: str) -> str:
    return key.removeprefix("HTTP_").replace("_", "-").title()[:50]
