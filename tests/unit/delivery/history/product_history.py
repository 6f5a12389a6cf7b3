"""The pipeline of a started product, from the command line, as a user runs it."""

import os
import subprocess
import sys

from config.embedded.postgres import running_url
from config.env import CHECKOUT
from tests.support import brief_spark
from tests.support.product import Product
from tests.system.operation.installation import MARK

# On a busy machine Spark takes minutes.
SECONDS = 600


def history(product: Product, *arguments: str) -> str:
    """Run the pipeline from the command line, on the product's database; return its output."""
    run = managed(product, "history", *arguments)
    assert run.returncode in (0, 3), run.stderr
    return run.stdout


def managed(product: Product, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command of `manage.py` on the product's database."""
    url = running_url(product.home)
    assert url is not None
    if "export" not in arguments:
        brief_spark.without_class_cache(product.home)
    environment = (
        os.environ
        | brief_spark.ENVIRONMENT
        | {
            "INTURN_HOME": str(product.home),
            "DATABASE_URL": url,
            MARK: product.mark,
            "PORT": str(product.port),
        }
    )
    return subprocess.run(
        [sys.executable, str(CHECKOUT / "manage.py"), *arguments],
        env=environment,
        capture_output=True,
        check=False,
        text=True,
        timeout=SECONDS,
        stdin=subprocess.DEVNULL,
    )


def archive(product: Product) -> None:
    """Archive all deliveries settled by now; a scheduled export may help."""
    with product.connect() as connection:
        row = connection.execute("SELECT clock_timestamp()").fetchone()
        assert row is not None
        # Each round takes as long as a JVM does; the test's own limit ends it.
        while not connection.execute(
            "SELECT 1 FROM delivery_archived WHERE until > %s", row
        ).fetchone():
            history(product, "export")
