"""A running Inturn leaves no file that other users of its machine can read."""

import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.product import BOOTSTRAP_KEY, Product
from tests.support.receivers import Receiver
from tests.unit.delivery.history.product_history import SECONDS, archive

PASSWORD = "a-password-of-nobody"

pytestmark = [pytest.mark.timeout(SECONDS), pytest.mark.slow]


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    home = tmp_path_factory.mktemp("open")
    # Created by the user beforehand: Inturn then leaves its mode as it is.
    home.chmod(0o755)
    product = Product(home, INTURN_ADMIN_PASSWORD=PASSWORD)
    try:
        product.start()
        yield product
    finally:
        product.kill_all()


def is_open(path: Path) -> bool:
    mode = path.lstat().st_mode
    return bool(mode & (stat.S_IRWXG | stat.S_IRWXO)) and not stat.S_ISLNK(mode)


def test_no_file_of_the_home_can_be_read_by_others(product: Product, receiver: Receiver) -> None:
    flow = product.flow("Closed")
    of = flow.subscribe(receiver.endpoint("e"))
    flow.publish()
    assert flow.wait_until_settled(of) == ["DELIVERED"]
    archive(product)
    found = [path for path in product.home.iterdir() if is_open(path)]
    # Other users cannot enter a closed folder; but archive and logs may be placed elsewhere.
    found += [
        path
        for name in ("archive", "logs")
        for path in (product.home / name).rglob("*")
        if is_open(path)
    ]
    assert list((product.home / "archive").rglob("*.parquet"))
    assert found == []


def test_no_part_keeps_the_secrets_that_are_used_once(product: Product) -> None:
    assert product.up is not None
    assert product.rest.get("event-types")
    parts = product.processes() - {product.up.pid}
    kept: dict[int, bytes] = {}
    for pid in parts:
        # Some of PostgreSQL's processes are short-lived.
        with suppress(FileNotFoundError, ProcessLookupError):
            kept[pid] = Path(f"/proc/{pid}/environ").read_bytes()
    assert kept
    for environment in kept.values():
        assert PASSWORD.encode() not in environment
        assert BOOTSTRAP_KEY.encode() not in environment
