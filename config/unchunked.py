"""Bodies without a Content-Length: Django would take them for empty, and store an empty message."""

from collections.abc import Callable, Iterable
from io import BytesIO
from typing import Any

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


def unchunked(application: Application, *, max_bytes: int) -> Application:
    """Give each body of unknown length its length.

    Of one that is too long only a byte more than `max_bytes` is read: enough for
    the view to see that.
    """

    def with_length(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        # Chunked, or HTTP/2, which needs no length.
        if not environ.get("CONTENT_LENGTH") and environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            body = environ["wsgi.input"].read(max_bytes + 1)
            environ |= {"CONTENT_LENGTH": str(len(body)), "wsgi.input": BytesIO(body)}
        return application(environ, start_response)

    return with_length
