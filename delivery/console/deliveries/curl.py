"""Commands for a shell: publish a message again, or make the request of a delivery again; secrets stand there as variables.

Whatever a publisher wrote is quoted, so that a shell takes nothing of it for a command.
"""

import shlex
from collections.abc import Iterable

from django.conf import settings

from delivery.console.deliveries.as_sent import KEY, Header, content_type_of, script_output, sent_request
from delivery.models import Delivery, Message, ScriptOutput
from delivery.models.message import public_id

# A longer body, or one that is no text, is downloaded first.
LONGEST_BODY = 32 * 1024
# curl says these itself, or they would make the copy no message of its own.
_LEFT_OUT = frozenset(
    {"content-type", "user-agent", "accept", "accept-encoding", "idempotency-key", "x-forwarded-for"}
)
_SIGNED = """\
# SECRET is the subscription's, whsec_…; as for any attempt, the signature is made of the time.
id={id} TIME=$(date +%s)
key=$(printf %s "${{SECRET#whsec_}}" | base64 -d | od -An -v -tx1 | tr -d ' \\n')
SIGNATURE=$({{ printf %s "$id.$TIME."; body; }} | openssl dgst -sha256 -mac HMAC -macopt "hexkey:$key" -binary | base64)"""


def publishing(message: Message) -> str:
    """Return what publishes the same again, as a message of its own; empty when only Inturn publishes such."""
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


def sending(delivery: Delivery) -> str:
    """Return what makes the request that the next attempt would make, to the endpoint itself."""
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
    said = [f"body | curl -sS -X {method} {shlex.quote(url)}", *map(_option, headers), "--data-binary @-"]
    return " \\\n  ".join(said)


def _option(header: Header) -> str:
    if header.variable:
        return f'-H {shlex.quote(f"{header.name}: {header.value}")}"{header.variable}"'
    # curl leaves out a header without a value unless it ends with a semicolon.
    return f"-H {shlex.quote(str(header) if header.value else f'{header.name};')}"


def _body(message: Message, *, made: ScriptOutput | None = None) -> str:
    """Define the shell's function `body`, which writes the exact bytes: the message's, or what a script has made of them."""
    made_body = None if made is None else made.body
    text = _text(bytes(message.body if made_body is None else made_body))
    if text is None and made_body is not None:
        return "# What the script made is too long, or no text; save it as made.bin first.\nbody() { cat made.bin; }"
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
    # A copied carriage return, or a line feed that a clipboard changes, would be another body.
    return None if any(character in text for character in "\0\r") else text
