"""A real PgBouncer in front of a database server, pooling by session."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from tests.system.operation.installation import eventually, free_port

PROGRAM = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
HOW_TO_GET_IT = "apt-get install pgbouncer"

# As in the guide: PgBouncer does not forward Inturn's planner options, so they are ignored.
_CONFIGURATION = """
[databases]
* = host={host} port={port} user={user} password={password}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {own_port}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
default_pool_size = {sessions}
max_client_conn = {sessions}
ignore_startup_parameters = extra_float_digits,options
"""


@contextmanager
def before(url: str, folder: Path, *, sessions: int = 90, mode: str = "session") -> Iterator[str]:
    """Run it in front of the server of that URL; yield the URL of the same database through it."""
    assert PROGRAM is not None
    server, port = urlsplit(url), free_port()
    reported = folder / "pgbouncer.ini"
    reported.write_text(
        _CONFIGURATION.format(
            host=server.hostname,
            port=server.port,
            user=server.username,
            password=server.password,
            own_port=port,
            sessions=sessions,
            mode=mode,
        )
    )
    # PgBouncer refuses to run as root.
    folder.chmod(0o711)
    reported.chmod(0o644)
    account = ["-u", "nobody"] if os.geteuid() == 0 else []
    through = url.replace(f"{server.hostname}:{server.port}", f"127.0.0.1:{port}")
    with (folder / "pgbouncer.log").open("w") as log:
        pooler = subprocess.Popen([PROGRAM, "-q", *account, str(reported)], stdout=log, stderr=log)
    try:
        eventually(lambda: pooler.poll() is not None or _answers(through), "PgBouncer answers")
        assert pooler.poll() is None, (folder / "pgbouncer.log").read_text()
        yield through
    finally:
        pooler.kill()
        pooler.wait()


def _answers(url: str) -> bool:
    try:
        with psycopg.connect(url):
            return True
    except psycopg.OperationalError:
        return False
