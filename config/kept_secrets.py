"""Secrets that are kept in the home, for installations whose settings give none."""

import os
import secrets
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured


def kept_secret(path: Path) -> str:
    """Return a secret stored in the home, created on first use.

    Machines that share a database must share their secrets, so there the settings supply them.
    """
    try:
        return path.read_text().strip() if path.exists() else _make_secret(path)
    except OSError as error:
        raise ImproperlyConfigured(
            f"INTURN_HOME: {path} cannot be used ({error.strerror})"
        ) from error


def _make_secret(path: Path) -> str:
    # Written to a draft and linked, so that two processes starting at once read the same finished
    # file.
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.touch(mode=0o600)
    with draft.open("w") as file:
        file.write(secrets.token_urlsafe(48))
        file.flush()
        # Synced, because after a power failure data encrypted with a lost secret would be
        # unreadable.
        os.fsync(file.fileno())
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
    return path.read_text().strip()
