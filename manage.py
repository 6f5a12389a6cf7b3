#!/usr/bin/env python3
"""Makes the environment on first use, then runs the command in it.

Older Pythons must be able to read this file, to say that they are too old.
"""

import os
import sys


def main() -> None:
    if sys.version_info < (3, 11):  # noqa: UP036 - the message is for older Pythons
        sys.exit("inturn: Python 3.11 or newer is needed, this is " + sys.version.split()[0])
    from config import bootstrap

    bootstrap.enter_environment(os.path.dirname(os.path.abspath(__file__)), sys.argv)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    from config.up import command_line

    command_line.run_command_line(sys.argv)


if __name__ == "__main__":
    main()
