"""A self-signed certificate of localhost."""

import ssl
import subprocess
from pathlib import Path


def certificate_of_localhost(folder: Path, *, days: int = 1) -> tuple[Path, ssl.SSLContext]:
    """Create the certificate in the folder; return the file and a server's context with it."""
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    subprocess.run(
        f"openssl req -x509 -newkey rsa:2048 -nodes -days {days} -subj /CN=localhost "
        f"-addext subjectAltName=DNS:localhost -keyout {key} -out {certificate}".split(),
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return certificate, context
