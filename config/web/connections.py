"""How many connections a process of the web server may hold. Stdlib only."""

import resource

# Most of them are of clients that wait.
MOST_CONNECTIONS = 4096
# What else a process needs descriptors for.
OTHER_DESCRIPTORS = 256


def max_connections() -> int:
    """Return so many as the hard limit of descriptors allows: granian takes all of them."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    return max(min(MOST_CONNECTIONS, hard - OTHER_DESCRIPTORS), 1)
