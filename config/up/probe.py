"""Whether the web server of this machine is ready."""

import http.client
import ssl
from urllib.parse import urlsplit


def is_ready(url: str) -> bool:
    """Return whether the web server at this address answers `/readyz` with 200."""
    connection = _connection(*urlsplit(url)[:2])
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _connection(scheme: str, host: str) -> http.client.HTTPConnection:
    if scheme == "http":
        return http.client.HTTPConnection(host, timeout=5)
    # This machine's own server, whose certificate names it as others call it.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return http.client.HTTPSConnection(host, timeout=5, context=context)
