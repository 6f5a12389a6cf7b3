"""The systemd units of `manage.py unit`, the notification of readiness, and exposed servers."""

import shutil
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from config import env
from config.management.commands.unit import PARTS, unit
from config.up.preflight import exposure
from config.up.supervisor import notify_service_manager
from delivery.management.doctor.python_version import python_weakness

Read = Callable[..., env.Environment]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    return lambda **given: env.read_environment({"INTURN_HOME": str(tmp_path / "home")} | given)


def directives(text: str) -> dict[str, str]:
    lines = [line for line in text.splitlines() if "=" in line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


@pytest.mark.parametrize("part", PARTS)
def test_a_unit_runs_its_part_with_this_checkout_and_home(read: Read, part: str) -> None:
    found = directives(unit(part, user="nobody", environment=read()))
    assert found["ExecStart"].endswith(f"manage.py {PARTS[part]}")
    assert Path(found["ExecStart"].split()[0]).exists()
    assert found["Environment"] == f"INTURN_HOME={read().home}"
    assert ("ExecStartPre" in found) == (part != "up")
    assert found["Type"] == ("notify" if part == "up" else "exec")


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd here")
def test_systemd_accepts_the_unit(read: Read, tmp_path: Path) -> None:
    file = tmp_path / "inturn.service"
    file.write_text(unit("up", user="root", environment=read()))
    reported = subprocess.run(
        ["systemd-analyze", "verify", str(file)], capture_output=True, text=True, check=False
    )
    assert "inturn.service" not in reported.stderr


def test_a_unit_may_write_to_an_archive_elsewhere(read: Read, tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    environment = read(HISTORY_URL=str(archive))
    assert directives(unit("up", user="nobody", environment=environment))["ReadWritePaths"] == (
        f"{environment.home} {archive}"
    )


def test_a_folder_that_a_unit_cannot_name_is_refused(read: Read, tmp_path: Path) -> None:
    with pytest.raises(ImproperlyConfigured, match="move it"):
        unit("up", user="nobody", environment=read(INTURN_HOME=str(tmp_path / "my home")))


@pytest.mark.parametrize("abstract", [False, True])
def test_the_service_manager_gets_the_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, abstract: bool
) -> None:
    name = f"@{tmp_path}" if abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(name.replace("@", "\0", 1))
        monkeypatch.setenv("NOTIFY_SOCKET", name)
        notify_service_manager("READY=1")
        assert manager.recv(100) == b"READY=1"
    # A service manager that is gone is no reason to fail.
    notify_service_manager("STOPPING=1")


def test_a_server_that_others_reach_without_encryption_is_warned_about(read: Read) -> None:
    assert list(exposure(read())) == []
    (reported,) = exposure(read(INTURN_LISTEN="0.0.0.0"))
    assert "set INTURN_TLS_CERTIFICATE" in reported
    (reported,) = exposure(
        read(INTURN_LISTEN="0.0.0.0", INTURN_BASE_URL="https://broker.example.com")
    )
    assert "let only the proxy reach it" in reported
    files = {"INTURN_TLS_CERTIFICATE": "/etc/c.pem", "INTURN_TLS_KEY": "/etc/k.pem"}
    assert list(exposure(read(INTURN_LISTEN="0.0.0.0", **files))) == []


@pytest.mark.parametrize(
    ("version", "fixed"),
    [((3, 11, 9), "3.11.10"), ((3, 12, 0), "3.12.6"), ((3, 11, 10), ""), ((3, 13, 0), "")],
)
def test_a_python_that_hostile_cookies_stop_is_named(
    version: tuple[int, int, int], fixed: str
) -> None:
    weakness = python_weakness(version)
    assert bool(weakness) == bool(fixed)
    assert fixed in weakness
