"""The content type of a message: as sent, or as the event type requires."""

from delivery.incoming.problems import Problem
from delivery.publishing.drafts import takes_json
from subscriptions.models import EventType
from subscriptions.values.media_types import JSON, is_json, media_type

MAX_CONTENT_TYPE_LENGTH = 255
# The default of clients such as curl when no content type is set.
FORM_TYPE = "application/x-www-form-urlencoded"


def with_content_type(headers: dict[str, str], event_type: EventType) -> tuple[dict[str, str], str]:
    """Return the message's headers and the content type for receivers; raise Problem.

    The event type's content type counts: clients such as curl call every body a form by default.
    """
    sent = headers.get("content-type", "")
    if len(sent) > MAX_CONTENT_TYPE_LENGTH:
        raise Problem(
            400, "invalid", f"Content-Type is longer than {MAX_CONTENT_TYPE_LENGTH} characters."
        )
    declared = event_type.content_type
    if not takes_json(event_type):
        return headers, sent or declared
    if media_type(sent) in ("", FORM_TYPE):
        content_type = declared if is_json(declared) else JSON
        return headers | ({"content-type": content_type} if sent else {}), content_type
    if is_json(sent) or media_type(sent) == media_type(declared):
        return headers, sent
    detail = (
        f"Messages of {event_type} are JSON, not {sent[:100]}. "
        f"Send JSON with Content-Type: {JSON}; "
        "or have an administrator give the event type another content type, and no schema."
    )
    raise Problem(415, "unsupported-media-type", detail)
