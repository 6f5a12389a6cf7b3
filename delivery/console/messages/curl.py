"""Shell commands to publish a message again or repeat a delivery's request.

Variables stand for secrets. All text from publishers is quoted, so a shell never runs any of it.
"""

import shlex
from collections.abc import Iterable

from django.conf import settings

from delivery.console.messages.as_sent import (
    KEY,
    Header,
    content_type_of,
    script_output,
    sent_request,
)
from delivery.models import Delivery, Message, ScriptOutput
from delivery.models.message import public_id

# A longer body, or a body other than text, has to be downloaded first.
LONGEST_BODY = 32 * 1024
# curl sets these headers itself, or they would make the copy a duplicate of the message.
_LEFT_OUT = frozenset(
    {
        "content-type",
        "user-agent",
        "accept",
        "accept-encoding",
        "idempotency-key",
        "x-forwarded-for",
    }
)
_SIGNED = """\
# SECRET is the subscription's, whsec_…; as for any attempt, the signature is made of the time.
id={id} TIME=$(date +%s)
key=$(printf %s "${{SECRET#whsec_}}" | base64 -d | od -An -v -tx1 | tr -d ' \\n')
SIGNATURE=$({{ printf %s "$id.$TIME."; body; }} | \
openssl dgst -sha256 -mac HMAC -macopt "hexkey:$key" -binary | base64)"""


def publish_command(message: Message) -> str:
    """Return a command to publish the same content as a new message.

    Empty when only Inturn publishes such messages.
    """
    if message.publisher_id is None:
        return ""
    url = f"{settings.ENVIRONMENT.base_url}/api/v1/events/{message.event_type.name}/messages"
    kept = [Header(name, value) for name, value in message.headers.items() if name not in _LEFT_OUT]
    headers = [
        Header("Authorization", "Bearer ", KEY),
        Header("content-type", content_type_of(message)),
        *kept,
    ]
    note = "# KEY is a key of a publisher that may publish this event type."
    return "\n".join([note, _body(message), _command("POST", url, headers)])


def send_command(delivery: Delivery) -> str:
    """Return a command for the request of the next attempt, to the endpoint itself."""
    request = sent_request(delivery)
    signed = _SIGNED.format(id=shlex.quote(public_id(delivery.message_id)))
    return "\n".join(
        [
            _body(delivery.message, made=script_output(delivery)),
            signed,
            _command(request.method, request.url, request.headers),
        ]
    )


def _command(method: str, url: str, headers: Iterable[Header]) -> str:
    parts = [
        f"body | curl -sS -X {method} {shlex.quote(url)}",
        *map(_option, headers),
        "--data-binary @-",
    ]
    return " \\\n  ".join(parts)


def _option(header: Header) -> str:
    if header.variable:
        return f'-H {shlex.quote(f"{header.name}: {header.value}")}"{header.variable}"'
    # curl leaves out a header without a value unless it ends with a semicolon.
    return f"-H {shlex.quote(str(header) if header.value else f'{header.name};')}"


def _body(message: Message, *, made: ScriptOutput | None = None) -> str:
    """Define the shell function `body`, which writes the exact bytes.

    They are the message's own, or the script's output for them.
    """
    made_body = None if made is None else made.body
    text = _text(bytes(message.body if made_body is None else made_body))
    if text is None and made_body is not None:
        return (
            "# The script's output is too long, or not text; save it as made.bin first.\n"
            "body() { cat made.bin; }"
        )
    if text is None:
        file = shlex.quote(f"{message.public_id}.txt")
        return f"# Download the raw body first: {file}\nbody() {{ cat {file}; }}"
    return f"body() {{ printf %s {shlex.quote(text)}; }}"


def _text(body: bytes) -> str | None:
    if len(body) > LONGEST_BODY:
        return None
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return None
    # A clipboard may change line breaks, and a copied carriage return may get lost: the body would
    # differ.
    return None if any(character in text for character in "\0\r") else text
