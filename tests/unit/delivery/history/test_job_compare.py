"""`manage.py compare` on the started product: its deliveries, as another broker had logged them."""

import csv
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.product import Product
from tests.support.receivers import Receiver
from tests.unit.delivery.history.product_history import SECONDS, archive, managed

COUNT = 6


@pytest.fixture
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    product = Product(tmp_path_factory.mktemp("compare"))
    try:
        product.start()
        yield product
    finally:
        product.kill_all()


@pytest.mark.slow
@pytest.mark.timeout(2 * SECONDS)
def test_exit_code_and_examples_say_whether_the_brokers_differ(
    product: Product, receiver: Receiver, tmp_path: Path
) -> None:
    flow = product.flow("Compared")
    subscription = flow.subscribe(receiver.endpoint("a"))
    flow.publish_numbered(COUNT)
    flow.wait_until_settled(subscription)
    archive(product)
    arguments = ["compare", "--key=$$->'Body'->>'number'", f"--subscription={subscription.id}"]
    log = tmp_path / "log.csv"
    log.write_text("\n".join(["key,status", *(f"{number},200" for number in range(COUNT))]))
    same = managed(product, *arguments, f"--theirs={log}", f"--output={tmp_path}")
    assert (same.returncode, same.stderr.count("differ")) == (0, 0), same.stderr
    assert f"same: {COUNT}" in same.stdout
    (written,) = tmp_path.glob("compared-run*.csv")
    with written.open(newline="") as file:
        assert [row["result"] for row in csv.DictReader(file)] == ["SAME"] * COUNT
    log.write_text("key,status\nlost,200\n0,404\n")
    other = managed(product, *arguments, f"--theirs={log}")
    assert other.returncode == 1
    assert f"1 only there, {COUNT - 1} only here, 1 in another status" in other.stderr
    assert "key lost" in other.stdout
