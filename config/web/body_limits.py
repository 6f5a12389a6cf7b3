"""The longest body of each path."""

from config.web.requesters import CALLBACKS, RECEIVERS, REPLIES

BATCH = "/api/v1/messages:batch"
CONFIGURATION = "/api/v1/configuration/"
# Other bodies may contain a message in base64, or percent-encoded in a form.
MOST_FOR_A_MESSAGE = 4


def limit_of(path: str, *, max_message_bytes: int, max_batch_bytes: int) -> int:
    """Return the longest body allowed for a path."""
    if path == BATCH or path.startswith(CONFIGURATION):
        return max_batch_bytes
    is_message = (
        path.startswith((CALLBACKS, REPLIES, RECEIVERS))
        or (path.startswith("/api/v1/events/") and path.endswith("/messages"))
        or (path.startswith("/api/v1/mailboxes/") and path.endswith("/reply"))
    )
    return max_message_bytes if is_message else MOST_FOR_A_MESSAGE * max_message_bytes
