"""`python -m tests.torture SECONDS --seed N`: exit 0 if every promise held."""

import argparse
import sys
import tempfile
from pathlib import Path

from tests.torture.run import torture


def main() -> int:
    parser = argparse.ArgumentParser(prog="manage.py test --torture", description=__doc__)
    parser.add_argument("seconds", type=float)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="inturn-torture-") as home:
        result = torture(Path(home), seconds=options.seconds, seed=options.seed)
    print(result.report(), flush=True)
    return 1 if result.findings else 0


if __name__ == "__main__":
    sys.exit(main())
