"""The user of the terminal, as an actor."""

import getpass


def terminal_user() -> str:
    try:
        return f"{getpass.getuser()} (command line)"
    except (KeyError, OSError):  # No such user in this container.
        return "command line"
