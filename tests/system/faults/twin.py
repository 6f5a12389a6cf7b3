"""A second machine with the name and the home of the first."""

import subprocess
from functools import cache
from pathlib import Path

from tests.support.product import Product

# Mounts one folder over another and runs a command: two machines have the same path, and different
# files there.
MOUNT = 'mount --bind "$0" "$1" && shift && exec "$@"'
NAMESPACES = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")


class Twin(Product):
    """A machine with the first one's name and home; neither sees the other's processes."""

    def __init__(self, first: Product, folder: Path, **environment: str) -> None:
        prefix = [*NAMESPACES, "sh", "-c", MOUNT, str(folder), str(first.home)]
        super().__init__(first.home, prefix=prefix, **environment)

    def postgres(self) -> set[int]:
        # The processes that use this folder outside the namespace belong to the first machine.
        return set()


@cache
def missing() -> str:
    """Return why a twin cannot run here; empty if it can."""
    tried = subprocess.run([*NAMESPACES, "true"], capture_output=True, check=False)
    return "" if tried.returncode == 0 else "needs mount and process namespaces"
