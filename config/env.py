"""The only reader of the environment: every setting, its unit and its default.

A setting `NAME` may also be given as `NAME_FILE`, the path of a file that holds
its value, which is how secrets reach a container.
"""

import ipaddress
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

import environ
from django.core.exceptions import ImproperlyConfigured

from config.embedded.postgres import running_url

CHECKOUT = Path(__file__).resolve().parent.parent

_read = environ.FileAwareEnv()

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """What this process was told; made once, by `read`."""

    home: Path
    port: int
    base_url: str
    allowed_hosts: list[str]
    debug: bool
    database_url: str
    secret_key: str
    encryption_keys: list[str]
    bootstrap_key: str
    admin_password: str
    allowed_networks: tuple[Network, ...]
    sender_processes: int
    sender_stint_seconds: int
    max_message_bytes: int
    publish_rate_limit: str
    web_workers: int
    web_threads: int
    log_level: str


def read() -> Environment:
    """Read all settings; raises ImproperlyConfigured with the name of a wrong one."""
    home = _home()
    port = _read.int("PORT", default=8000)
    return Environment(
        home=home,
        port=port,
        base_url=_read.str("INTURN_BASE_URL", default=f"http://127.0.0.1:{port}").rstrip("/"),
        allowed_hosts=_read.list("INTURN_ALLOWED_HOSTS", default=["127.0.0.1", "localhost", "[::1]"]),
        debug=_read.bool("INTURN_DEBUG", default=False),
        database_url=_read.str("DATABASE_URL", default="") or running_url(home) or "",
        secret_key=_secret("INTURN_SECRET_KEY", home / "secret-key"),
        encryption_keys=_secret("INTURN_ENCRYPTION_KEYS", home / "encryption-keys").split(),
        bootstrap_key=_read.str("INTURN_BOOTSTRAP_KEY", default=""),
        admin_password=_read.str("INTURN_ADMIN_PASSWORD", default=""),
        allowed_networks=_networks("INTURN_ALLOWED_NETWORKS"),
        sender_processes=_read.int("SENDER_PROCESSES", default=2),
        sender_stint_seconds=_read.int("SENDER_STINT_SECONDS", default=600),
        max_message_bytes=_read.int("INTURN_MAX_MESSAGE_BYTES", default=1024 * 1024),
        publish_rate_limit=_read.str("INTURN_PUBLISH_RATE_LIMIT", default=""),
        web_workers=_read.int("WEB_WORKERS", default=1),
        web_threads=_read.int("WEB_THREADS", default=8),
        log_level=_read.str("INTURN_LOG_LEVEL", default="INFO").upper(),
    )


def _home() -> Path:
    return Path(_read.str("INTURN_HOME", default=str(CHECKOUT / "var"))).expanduser().resolve()


def _secret(name: str, path: Path) -> str:
    """Return the secret of the environment, else the one kept in the home, made on first use.

    Machines that share a database must share it, so they give it by name.
    """
    given: str = _read.str(name, default="")
    if given:
        return given
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        return _make_secret(path)


def _make_secret(path: Path) -> str:
    # Written aside and linked, so that of two processes that start at once both
    # read the same finished file.
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.touch(mode=0o600)
    draft.write_text(secrets.token_urlsafe(48))
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
    return path.read_text().strip()


def _networks(name: str) -> tuple[Network, ...]:
    try:
        return tuple(ipaddress.ip_network(item.strip()) for item in _read.list(name, default=[]))
    except ValueError as error:
        raise ImproperlyConfigured(
            f"{name}: {error}. Give CIDR ranges, e.g. 10.1.0.0/16,127.0.0.0/8."
        ) from error
