"""A second machine that has the name and the home of the first."""

import subprocess
from functools import cache
from pathlib import Path

from tests.support.product import Product

# Mounts one folder over another and goes on: two machines have the same path, and different files there.
MOUNT = 'mount --bind "$0" "$1" && shift && exec "$@"'
NAMESPACES = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")


class Twin(Product):
    """A machine with the same name and home as the first: to each, the other's processes and files do not exist."""

    def __init__(self, first: Product, folder: Path, **environment: str) -> None:
        prefix = [*NAMESPACES, "sh", "-c", MOUNT, str(folder), str(first.home)]
        super().__init__(first.home, prefix=prefix, **environment)

    def postgres(self) -> set[int]:
        # What works in that folder out here is the first one's.
        return set()


@cache
def missing() -> str:
    """Why there can be no twin here; empty if there can."""
    tried = subprocess.run([*NAMESPACES, "true"], capture_output=True, check=False)
    return "" if tried.returncode == 0 else "needs mount and process namespaces"
