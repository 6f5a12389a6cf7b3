"""Checks of the TLS files before the web server starts; the server's own error names no setting."""

import ssl
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from config.addresses import CERTIFICATE, KEY, TlsFiles

# The only format that the web server reads.
PKCS8 = "-----BEGIN PRIVATE KEY-----"


def require_usable(files: TlsFiles) -> None:
    """Raise ImproperlyConfigured if the server could not use the certificate and the key."""
    _content(CERTIFICATE, files.certificate)
    if PKCS8 not in _content(KEY, files.key):
        raise ImproperlyConfigured(
            f"{KEY}: {files.key} is not an unencrypted key in the format PKCS #8: convert it with "
            f"`openssl pkcs8 -topk8 -nodes -in {files.key} -out server-key.pem`"
        )
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(files.certificate, files.key)
    except (ssl.SSLError, OSError) as error:
        raise ImproperlyConfigured(
            f"{CERTIFICATE}: {files.certificate} cannot be used with {files.key} "
            f"({_reason(error)}): give a PEM file with the server's certificate, followed by those "
            "of its authorities, and its own key"
        ) from error


def _content(name: str, path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError as error:
        raise ImproperlyConfigured(f"{name}: {path} cannot be read ({error.strerror})") from error


def _reason(error: Exception) -> str:
    return str(getattr(error, "reason", None) or error).replace("_", " ").lower()
