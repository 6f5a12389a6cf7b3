"""The number of connections a process of the web server may hold. Stdlib only."""

import resource

# Most of them belong to waiting clients.
MOST_CONNECTIONS = 4096
# Descriptors for everything else in a process.
OTHER_DESCRIPTORS = 256


def max_connections() -> int:
    """Return the number allowed by the hard limit of descriptors; granian uses all of them."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    return max(min(MOST_CONNECTIONS, hard - OTHER_DESCRIPTORS), 1)
