"""README's tour, pasted as a whole into a shell: the message that it publishes is delivered."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from config.env import CHECKOUT
from tests.support.rest import ProductClient
from tests.system.operation.installation import eventually, free_port

# The variables that the tour leaves in the shell, printed after its last command.
TELL = 'echo "tour: $INTURN_BOOTSTRAP_KEY $message"\n'


def pasted(section: str) -> str:
    """Return the section's commands, without the indentation that makes them code."""
    readme = (CHECKOUT / "README.md").read_text()
    _, _, rest = readme.partition(f"## {section}\n")
    lines = rest.partition("\n## ")[0].splitlines()
    return "".join(f"{line.removeprefix('    ')}\n" for line in lines if line.startswith("    "))


@contextmanager
def shell(home: Path, port: int) -> Iterator[subprocess.Popen[str]]:
    """A shell that finds this environment's Python; its child processes end with it."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    environment |= {"PATH": path, "INTURN_HOME": str(home), "PORT": str(port)}
    with subprocess.Popen(
        ["bash"],
        cwd=CHECKOUT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as bash:
        try:
            yield bash
        finally:
            assert bash.stdin is not None
            bash.stdin.write("kill %1 %2; wait\n")
            bash.stdin.close()


def test_the_tour_runs_as_it_is_pasted(tmp_path: Path) -> None:
    port, receiving = free_port(), free_port()
    tour = pasted("A quick tour").replace("8000", str(port)).replace("9000", str(receiving))
    with shell(tmp_path, port) as bash:
        assert bash.stdin is not None
        assert bash.stdout is not None
        bash.stdin.write(tour + TELL)
        bash.stdin.flush()
        # curl's answers end without a newline.
        found = next(
            found for line in bash.stdout if (found := re.search(r"tour: (\w+) (msg_\d+)$", line))
        )
        rest = ProductClient(f"http://127.0.0.1:{port}", found[1])

        def is_delivered() -> bool:
            deliveries = rest.get(f"messages/{found[2]}")["deliveries"]
            return [delivery["status"] for delivery in deliveries] == ["DELIVERED"]

        eventually(is_delivered, "the tour's message is DELIVERED")
