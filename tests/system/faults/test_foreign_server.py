"""A customer's PostgreSQL with defaults of its own: promises hold, or `prepare` refuses it."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from config.embedded.cluster import OWNER, execute_statements
from config.embedded.postgres import THROWAWAY, Server
from config.embedded.programs import find_account, find_programs
from config.up import processes
from tests.support.product import Product
from tests.system.faults import pgbouncer
from tests.system.operation.installation import eventually
from tests.system.operation.test_prepare import prepare

# Without the promised settings a commit would reach the disk up to ten seconds later.
LATE = {"synchronous_commit": "off", "wal_writer_delay": "10s"}
FOREIGN = {
    "default_transaction_isolation": "serializable",
    "datestyle": "SQL, DMY",
    "timezone": "Asia/Kolkata",
    "statement_timeout": "3s",
    "idle_session_timeout": "4s",
}
MESSAGES = 40


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path / "server", settings={**THROWAWAY, **LATE, **FOREIGN})
    try:
        yield server
    finally:
        server.stop()


def crash(server: Server) -> None:
    """End the server at once; what it has not written is lost."""
    postmaster = server.cluster.pid()
    assert postmaster is not None
    processes.send_signal(signal.SIGQUIT, [postmaster])
    eventually(lambda: not server.is_alive(), "the server has crashed")


def test_no_accepted_message_is_lost_in_a_crash(server: Server, tmp_path: Path) -> None:
    product = Product(tmp_path / "home", DATABASE_URL=server.start())
    try:
        product.start()
        flow = product.flow("Late")
        published = [flow.publish() for _ in range(MESSAGES)]
        crash(server)
        server.start()
        eventually(product.is_ready, "the product has found the server")
        answers = [product.rest.ask("GET", f"messages/{id}").status_code for id in published]
        assert answers == [200] * MESSAGES
    finally:
        product.kill_all()


def test_a_role_whose_triggers_do_not_run_is_refused(server: Server, tmp_path: Path) -> None:
    server.start()
    server.stop()
    execute_statements(
        f"ALTER ROLE {OWNER} SET session_replication_role = replica",
        find_account(),
        find_programs(),
        data=server.cluster.data,
    )
    refused = prepare(tmp_path / "home", server.start())
    said, _ = refused.communicate()
    assert refused.returncode == 1
    assert "triggers do not run" in said
    assert "Traceback" not in said


@pytest.mark.skipif(pgbouncer.PROGRAM is None, reason=f"no pgbouncer: {pgbouncer.HOW_TO_GET_IT}")
@pytest.mark.parametrize("mode", ["transaction", "session"])
def test_a_pooler_that_shares_sessions_is_refused(
    mode: str, server: Server, tmp_path: Path
) -> None:
    folder = tmp_path / "pgbouncer"
    folder.mkdir()
    for parent in (tmp_path.parent, tmp_path):
        parent.chmod(0o711)
    with pgbouncer.before(server.start(), folder, mode=mode) as through:
        prepared = prepare(tmp_path / "home", through)
        said, _ = prepared.communicate()
    assert prepared.returncode == (mode == "transaction"), said
    assert ("pool_mode = session" in said) == (mode == "transaction")
