#!/usr/bin/env python3
"""Makes the environment on first use, then hands over to Django.

Older Pythons must be able to read this file, to say that they are too old.
"""

import os
import sys

# They only start other processes. Setting up Django would cost them more time and memory
# than all that they do, and `up` runs for years.
WITHOUT_DJANGO = ("up", "web", "test")


def main() -> None:
    if sys.version_info < (3, 11):  # noqa: UP036 - the message is for those that are older
        sys.exit("inturn: Python 3.11 or newer is needed, this is " + sys.version.split()[0])
    from config import bootstrap

    bootstrap.enter(os.path.dirname(os.path.abspath(__file__)), sys.argv)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    if sys.argv[1:] and sys.argv[1] in WITHOUT_DJANGO:
        from importlib import import_module

        import_module("config.management.commands." + sys.argv[1]).Command().run_from_argv(sys.argv)
    else:
        from django.core.management import execute_from_command_line

        execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
