"""The limit of open files. Stdlib only, for code before Django's start."""

import resource


def raise_file_limit() -> None:
    """Raise the soft limit of open files to the hard limit, because every endpoint is a socket.

    The usual soft limit of 1,024 is a default for programs with select().
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (ValueError, OSError):
        return
