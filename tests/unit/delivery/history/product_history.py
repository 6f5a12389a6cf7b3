"""The pipeline of a started product, from the command line, as whoever runs it gives it."""

import os
import subprocess
import sys

from config.embedded.postgres import running_url
from config.env import CHECKOUT
from tests.support.product import Product
from tests.system.operation.installation import MARK

# On a machine that is busy with other things Spark takes minutes.
SECONDS = 600


def history(product: Product, *arguments: str) -> str:
    """Run the pipeline from the command line, on the product's database; what it says."""
    url = running_url(product.home)
    assert url is not None
    environment = os.environ | {
        "INTURN_HOME": str(product.home),
        "DATABASE_URL": url,
        MARK: product.mark,
        "PORT": str(product.port),
    }
    run = subprocess.run(
        [sys.executable, str(CHECKOUT / "manage.py"), "history", *arguments],
        env=environment,
        capture_output=True,
        check=False,
        text=True,
        timeout=SECONDS,
        stdin=subprocess.DEVNULL,
    )
    assert run.returncode in (0, 3), run.stderr
    return run.stdout


def archive(product: Product) -> None:
    """Archive all that is settled by now, be it by an export of the schedule's."""
    with product.connect() as connection:
        row = connection.execute("SELECT clock_timestamp()").fetchone()
        assert row is not None
        # Each takes as long as a JVM does; the test's own limit ends it.
        while not connection.execute("SELECT 1 FROM delivery_archived WHERE until > %s", row).fetchone():
            history(product, "export")
