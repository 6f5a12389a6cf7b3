"""Notification of systemd, which waits for it with `Type=notify`. Stdlib only."""

import os
import socket


def notify_service_manager(state: str) -> None:
    """Send the state, such as `READY=1`, if a service manager has started this process."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    # An abstract address begins with NUL, which no environment can have.
    path = f"\0{address[1:]}" if address.startswith("@") else address
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as connection:
            connection.sendto(state.encode(), path)
    except OSError:
        return
