"""The switch from an old broker: its backlog first, then messages published since, each once."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from config.env import CHECKOUT
from tests.support.product import Flow, Product, StartedSubscription
from tests.support.receivers import Receiver
from tests.system.flows.test_commands import run
from tests.system.operation.installation import eventually

LINES = 2_000


def waiting(product: Product, of: StartedSubscription) -> int:
    with product.connect() as connection:
        statement = b"SELECT count(*) FROM delivery_waiting WHERE subscription_id = %s"
        row = connection.execute(statement, [of.id]).fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.slow
def test_a_killed_import_goes_on_and_the_backlog_is_sent_first(
    flow: Flow, receiver: Receiver, tmp_path: Path
) -> None:
    of = flow.subscribe(receiver.endpoint("a"))
    flow.rest.patch(f"subscribers/{of.subscriber}", {"status": "HELD"})
    assert run(flow.product, "import", "reserve", str(LINES)).returncode == 0
    flow.publish(b'{"number": "new"}')
    path = tmp_path / "backlog.jsonl"
    lines = [{"key": f"{n}", "event": flow.event_type, "body": {"number": n}} for n in range(LINES)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    command = (
        *("import", "backlog", str(path), "--publisher", flow.event_type),
        *("--source", flow.event_type, "--apply"),
    )
    environment = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    environment |= {"INTURN_HOME": str(flow.product.home), "PORT": str(flow.product.port)}
    with subprocess.Popen(
        [sys.executable, str(CHECKOUT / "manage.py"), *command], env=environment
    ) as started:
        eventually(lambda: waiting(flow.product, of) > 1, "some of the backlog is stored")
        started.send_signal(signal.SIGKILL)
    print(f"killed after {waiting(flow.product, of) - 1:,} of {LINES:,} messages")

    finished = run(flow.product, *command)
    assert finished.returncode == 0, finished.stderr
    assert waiting(flow.product, of) == LINES + 1
    flow.rest.patch(f"subscribers/{of.subscriber}", {"status": "ACTIVE", "backlog": "deliver"})
    received = of.endpoint.wait_for_count(LINES + 1)
    assert [json.loads(request.body)["number"] for request in received] == [*range(LINES), "new"]
