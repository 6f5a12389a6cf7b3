"""The drill: a back-up under load, the loss of the machine, and a restore killed halfway."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from standardwebhooks import Webhook

from config.backup.manifest import read_manifest
from config.backup.restore_marker import MARKER
from config.env import CHECKOUT
from tests.support.product import Flow, Product
from tests.support.receivers import OK, Receiver, ReceiverEndpoint, Slow
from tests.support.receivers.received import Received
from tests.system.faults.load import Load
from tests.system.operation.installation import DEADLINE_SECONDS, eventually
from tests.system.operation.test_refusals import refusal

pytestmark = pytest.mark.slow


def manage(home: Path, *command: str) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    return subprocess.Popen(
        [sys.executable, str(CHECKOUT / "manage.py"), *command],
        env=environment | {"INTURN_HOME": str(home)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> str:
    out, error = process.communicate(timeout=2 * DEADLINE_SECONDS)
    assert process.returncode == 0, error
    return out


def restore_twice(backup: Path, home: Path) -> None:
    """Restore; the first time the command is killed halfway, and nothing starts on its remains."""
    first = manage(home, "restore", "--from", str(backup))
    eventually(lambda: list(home.glob("postgresql-*/data")), "the database exists")
    first.kill()
    first.communicate()
    assert (home / MARKER).exists()
    assert f"repeat `manage.py restore --from {backup}`" in refusal(home, "up")
    assert "start it with" in ended(manage(home, "restore", "--from", str(backup)))
    assert not (home / MARKER).exists()


def back_up_under_load(flow: Flow, backup: Path) -> int:
    """Return the number of the last message, which the back-up has not."""
    with Load(flow).running() as load:
        load.wait_for_more(100)
        assert "open deliveries" in ended(manage(flow.product.home, "backup", "--to", str(backup)))
        load.wait_for_more(50)
    return number_of(load.accepted[-1])


def number_of(message: str) -> int:
    return int(message.removeprefix("msg_"))


def later(endpoint: ReceiverEndpoint, before: int) -> list[str]:
    """Return the ids received after the first `before`, once there are some."""
    eventually(lambda: len(endpoint.received) > before, "a request arrives")
    return [request.id for request in endpoint.received[before:]]


def insist_on_signature(request: Received, secret: str) -> None:
    """The secret was encrypted with a key that the restore has brought back."""
    assert Webhook(secret).verify(request.body, dict(request.headers)) is not None
    assert request.headers["inturn-redelivery"] == "resubmitted"


def test_a_restored_installation_sends_nothing_twice_by_itself(
    receiver: Receiver, tmp_path: Path
) -> None:
    backup = tmp_path / "backup"
    old, new = Product(tmp_path / "old"), Product(tmp_path / "new")
    slow, down = receiver.endpoint("slow"), receiver.endpoint("down")
    slow.always(Slow(0.02))
    down.always(Slow(60))
    try:
        old.start()
        flow = old.flow("Backup")
        subscribed = flow.subscribe(slow)
        flow.subscribe(down)
        last = back_up_under_load(flow, backup)
        old.kill_all()
        restore_twice(backup, new.home)

        sent = len(slow.received), len(down.received)
        down.always(OK)
        new.start()
        in_doubt = list(new.rest.all("deliveries", status="IN_DOUBT"))
        assert len(in_doubt) == read_manifest(backup).counts["waiting"] > 0
        fresh = Flow(new, flow.event_type, new.publisher_of(flow.event_type)).publish()
        assert number_of(fresh) > last
        assert [later(slow, sent[0]), later(down, sent[1])] == [[fresh], [fresh]]

        # A person decides.
        mine = next(row["id"] for row in in_doubt if row["subscription"] == subscribed.id)
        new.rest.post(f"deliveries/{mine}/resubmit")
        later(slow, sent[0] + 1)
        insist_on_signature(slow.received[-1], subscribed.secret)
    finally:
        old.kill_all()
        new.kill_all()
