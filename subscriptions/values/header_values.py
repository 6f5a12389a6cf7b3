"""The headers and credentials added to requests by a subscription."""

import re
from collections.abc import Collection, Mapping
from typing import Any

from django.core.exceptions import ValidationError

MAX_HEADERS = 50
MAX_NAME_LENGTH = 200
MAX_VALUE_LENGTH = 4000
MAX_TOTAL_LENGTH = 16_000
MAX_CREDENTIAL_LENGTH = 1000

RESERVED_PREFIXES = ("webhook-", "inturn-", "proxy-")
HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "te",
        "trailer",
        "trailers",
        "transfer-encoding",
        "upgrade",
        "http2-settings",
    }
)
RESERVED_NAMES = HOP_BY_HOP | {
    "host",
    "content-length",
    "content-type",
    "content-encoding",
    "expect",
    "callbackurl",
}

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_VISIBLE = re.compile(r"[\x21-\x7e]+")
_ANY_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


class HeaderError(ValueError):
    """This header or credential cannot be sent; the message says how to correct it."""


def check_header(name: str, value: str) -> None:
    """Raise HeaderError unless any client can send this as a header of the subscription."""
    if not is_header_name(name):
        raise HeaderError(
            f"{name[:50]!r} is not a header name: use letters, digits and hyphens, "
            f"at most {MAX_NAME_LENGTH}."
        )
    if is_reserved(name):
        raise HeaderError(f"{name} is set by Inturn itself; leave it out.")
    if _CONTROL.search(value):
        raise HeaderError(
            f"The value of {name} holds a line break or another control character; remove it."
        )
    if not value.isascii():
        raise HeaderError(f"The value of {name} is not ASCII; percent-encode the other characters.")
    if value != value.strip():
        raise HeaderError(
            f"The value of {name} begins or ends with white space, which receivers drop."
        )
    if len(value) > MAX_VALUE_LENGTH:
        raise HeaderError(f"The value of {name} is longer than {MAX_VALUE_LENGTH} characters.")


def is_header_name(name: str) -> bool:
    """Return whether HTTP allows this as a header name."""
    return len(name) <= MAX_NAME_LENGTH and _TOKEN.fullmatch(name) is not None


def is_sendable(name: str, value: str) -> bool:
    """Return whether a client can write this as a header; the value need not be ASCII."""
    return is_header_name(name) and not _CONTROL.search(value) and not _SURROGATE.search(value)


def is_reserved(name: str) -> bool:
    # Some servers read _ as -: webhook_id would arrive alongside the real webhook-id.
    name = name.lower().replace("_", "-")
    return name in RESERVED_NAMES or name.startswith(RESERVED_PREFIXES)


def check_headers(headers: Mapping[str, str]) -> None:
    """Raise HeaderError for the first invalid header, or for too many or too long headers."""
    if len(headers) > MAX_HEADERS:
        raise HeaderError(f"At most {MAX_HEADERS} headers.")
    for name, value in headers.items():
        check_header(name, value)
    if len({name.lower() for name in headers}) < len(headers):
        raise HeaderError("A header occurs twice; upper and lower case do not matter in names.")
    if sum(len(name) + len(value) for name, value in headers.items()) > MAX_TOTAL_LENGTH:
        raise HeaderError(f"The headers are longer than {MAX_TOTAL_LENGTH} characters together.")


def validate_headers(headers: Mapping[str, str]) -> None:
    try:
        check_headers(headers)
    except HeaderError as error:
        raise ValidationError(str(error)) from None


def validate_auth(auth: Mapping[str, Any]) -> None:
    """Refuse an object in none of the three forms, whatever the headers are."""
    try:
        check_auth(auth, header_names=())
    except HeaderError as error:
        raise ValidationError(str(error)) from None


def with_shared(
    own: Mapping[str, str], shared: Mapping[str, str] | None, *, has_credential: bool
) -> dict[str, str]:
    """Return a subscription's headers and the subscriber's; the subscription's win.

    With an own credential, or the publisher's, it gets no Authorization of the subscriber.
    """
    taken = {name.lower() for name in own} | ({"authorization"} if has_credential else set())
    kept = {name: value for name, value in (shared or {}).items() if name.lower() not in taken}
    return kept | dict(own)


def check_auth(
    auth: Mapping[str, Any], *, header_names: Collection[str], forwards: bool = False
) -> None:
    """Raise HeaderError unless `auth` has any of the three forms of `Subscription.auth`.

    `forwards`: the publisher's credential is passed on, so the subscription may have none.
    """
    fields = _AUTH_FIELDS.get(
        auth.get("type", "none") if isinstance(auth.get("type", "none"), str) else ""
    )
    if fields is None:
        raise HeaderError(
            "type is one of none, basic (with username and password), bearer (with token)."
        )
    if set(auth) - {"type"} != fields:
        raise HeaderError(
            f"With type {auth.get('type', 'none')} give exactly: "
            f"{', '.join(sorted(fields)) or 'nothing else'}."
        )
    for field in sorted(fields):
        _check_credential(field, auth[field])
    has_header = any(name.lower() == "authorization" for name in header_names)
    if fields and has_header:
        raise HeaderError("Give either auth or a header Authorization, not both.")
    if forwards and (fields or has_header):
        raise HeaderError(
            "With forward_authorization the publisher's credential is sent: give none here."
        )


_AUTH_FIELDS: dict[str, set[str]] = {
    "none": set(),
    "basic": {"username", "password"},
    "bearer": {"token"},
}


def _check_credential(field: str, value: object) -> None:
    if not isinstance(value, str) or len(value) > MAX_CREDENTIAL_LENGTH:
        raise HeaderError(f"{field} is text of at most {MAX_CREDENTIAL_LENGTH} characters.")
    if _ANY_CONTROL.search(value):
        raise HeaderError(f"{field} holds a line break or another control character; remove it.")
    if field == "username" and (":" in value or not value):
        raise HeaderError(
            "username is not empty and holds no colon: basic authentication ends it there."
        )
    if field == "token" and not _VISIBLE.fullmatch(value):
        raise HeaderError("token is one word of visible ASCII characters.")
