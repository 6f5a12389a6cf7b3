"""The addresses on which the web server listens: one of this machine's, or all."""

import http.client
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from tests.support.rest import SECONDS
from tests.support.tls import certificate_of_localhost
from tests.system.operation.installation import StartedInstallation
from tests.system.operation.test_refusals import refusal

ELSEWHERE = "127.0.0.2"


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


@pytest.fixture
def stopped(installation: StartedInstallation) -> Iterator[StartedInstallation]:
    """The shared installation, which the test starts with another address."""
    if installation.is_running():
        installation.stop()
    yield installation
    installation.kill_all()


def status_by_tls(port: int, certificate: Path) -> int:
    """Return the status of `/healthz` by TLS, which only the certificate's owner can answer."""
    context = ssl.create_default_context(cafile=str(certificate))
    context.check_hostname = False
    connection = http.client.HTTPSConnection(ELSEWHERE, port, timeout=SECONDS, context=context)
    try:
        connection.request("GET", "/healthz", headers={"Host": "localhost"})
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.slow
def test_the_server_listens_only_on_its_address_speaks_tls_and_logs_to_standard_output(
    stopped: StartedInstallation, tmp_path: Path
) -> None:
    certificate, _ = certificate_of_localhost(tmp_path)
    stopped.up = stopped.launch(
        INTURN_LISTEN=ELSEWHERE,
        INTURN_TLS_CERTIFICATE=str(certificate),
        INTURN_TLS_KEY=str(tmp_path / "key.pem"),
        INTURN_LOG_TO="stdout",
    )
    assert stopped.up.stdout is not None
    lines: list[str] = []
    for line in stopped.up.stdout:
        lines.append(line)
        if line.startswith("ready "):
            break
    assert lines[-1] == f"ready https://{ELSEWHERE}:{stopped.port}\n"
    assert any("database system is ready to accept connections" in line for line in lines)
    assert status_by_tls(stopped.port, certificate) == 200
    with pytest.raises(requests.ConnectionError):
        requests.get(f"http://127.0.0.1:{stopped.port}/readyz", timeout=SECONDS)
    code, rest = stopped.stop()
    assert code == 0
    assert "database system is shut down" in rest


@pytest.mark.slow
@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")
def test_the_server_listens_on_ipv6(stopped: StartedInstallation) -> None:
    stopped.up = stopped.launch(INTURN_LISTEN="[::1]")
    url = f"http://[::1]:{stopped.port}"
    assert stopped.first_line() == f"ready {url}\n"
    assert requests.get(f"{url}/readyz", timeout=SECONDS).status_code == 200
    assert stopped.stop() == (0, "")


def test_an_address_that_is_not_this_machines_is_refused(tmp_path: Path) -> None:
    reported = refusal(tmp_path, "up", INTURN_LISTEN="192.0.2.77")
    assert reported == "inturn: 192.0.2.77 is no address of this machine: set INTURN_LISTEN\n"


def test_tls_files_that_cannot_be_used_are_refused_with_the_setting(tmp_path: Path) -> None:
    certificate, _ = certificate_of_localhost(tmp_path)
    key, other = tmp_path / "key.pem", tmp_path / "other"
    other.mkdir()
    certificate_of_localhost(other)

    def refused(key: Path) -> str:
        return refusal(
            tmp_path, "web", INTURN_TLS_CERTIFICATE=str(certificate), INTURN_TLS_KEY=str(key)
        )

    reported = refused(other / "key.pem")
    assert reported.startswith(
        f"inturn: INTURN_TLS_CERTIFICATE: {certificate} cannot be used with {other}/key.pem"
    )
    assert "mismatch" in reported
    assert "INTURN_TLS_KEY: " in refused(tmp_path / "nowhere.pem")
    key.write_text(key.read_text().replace("BEGIN PRIVATE", "BEGIN RSA PRIVATE"))
    assert "convert it with `openssl pkcs8" in refused(key)
