"""`python -m tests.support.many`: fill an empty database (DATABASE_URL) with a large history.

`--deliveries` is the size. A database with as many deliveries stays unchanged. With `--more`, a
history written by this program gets the missing deliveries.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import django
from django.db import transaction
from django.utils import timezone

from tests.support.many.sizes import FULL, sizes_of


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.support.many", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--deliveries", type=int, default=FULL)
    parser.add_argument(
        "--bodies",
        type=Path,
        help="real payloads to cut bodies from; made ones where it is missing",
    )
    parser.add_argument(
        "--more", action="store_true", help="add to a history that this has written"
    )
    parser.add_argument(
        "--configured",
        type=int,
        help="make event types, subscribers and subscriptions for so many deliveries; "
        "as many as are written otherwise",
    )
    options = parser.parse_args(arguments)
    django.setup()
    # Models can be imported only after setup.
    from delivery.models import Delivery
    from tests.support.many import configured, history

    count = Delivery.objects.count()
    if count and (count >= options.deliveries or not options.more):
        print(
            f"The database has {count:,} deliveries already: only an empty one is filled.",
            file=sys.stderr,
        )
        return 0 if count >= options.deliveries else 1
    sizes, now = sizes_of(options.deliveries - count), timezone.now()
    if not count:
        with transaction.atomic():
            configured.configure(sizes_of(options.configured or options.deliveries), now=now)
    history.write(
        sizes,
        now=now,
        real=options.bodies,
        say=lambda line: print(line, file=sys.stderr, flush=True),
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
