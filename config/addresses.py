"""The addresses of this machine's web server: where it listens, and how it is reached here."""

import ipaddress
from dataclasses import dataclass

from django.core.exceptions import ImproperlyConfigured

from config.env_values import wrong_value

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
CERTIFICATE, KEY = "INTURN_TLS_CERTIFICATE", "INTURN_TLS_KEY"


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Paths of PEM files: the server's certificate with its chain, and the private key."""

    certificate: str
    key: str


def listen_address(text: str) -> Address:
    bare = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    try:
        if "%" in bare:  # A zone, such as %eth0: no URL can have a zone.
            raise ValueError
        return ipaddress.ip_address(bare)
    except ValueError:
        raise wrong_value(
            "INTURN_LISTEN",
            text,
            allowed="an IP address of this machine, like 127.0.0.1, 0.0.0.0 or [::]",
        ) from None


def tls_files(certificate: str, key: str) -> TlsFiles | None:
    """Return the files; None without them. Only the web server reads them."""
    for name, text in ((CERTIFICATE, certificate), (KEY, key)):
        if "-----BEGIN" in text:  # Without the value, which may be the key.
            raise ImproperlyConfigured(
                f"{name}: the value is the content of a file; give its path, in {name} itself"
            )
    if bool(certificate) != bool(key):
        given, missing = (CERTIFICATE, KEY) if certificate else (KEY, CERTIFICATE)
        raise ImproperlyConfigured(f"{given} is given without {missing}: set both, or none")
    return TlsFiles(certificate, key) if certificate else None


def own_host(listen: Address) -> str:
    """Return the host of `own_url`: the loopback if the server listens on every address."""
    if listen.version == 4:
        return "127.0.0.1" if listen.is_unspecified else str(listen)
    return "[::1]" if listen.is_unspecified else f"[{listen}]"


def own_url(listen: Address, port: int, *, tls: TlsFiles | None) -> str:
    return f"{'https' if tls else 'http'}://{own_host(listen)}:{port}"


def require_encryption_agrees(base_url: str, tls: TlsFiles | None) -> None:
    """Raise ImproperlyConfigured if people would be sent to an address that does not answer."""
    if tls is not None and not base_url.startswith("https://"):
        raise ImproperlyConfigured(
            f"INTURN_BASE_URL: {base_url!r} is not https, but {CERTIFICATE} is given and the "
            "server answers by TLS only: begin it with https://"
        )
