"""The marker of an unfinished restore: while it exists, nothing may serve or send from the home."""

from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from config.backup.manifest import sync_to_disk

MARKER = "restore-unfinished"


def begin_restore(home: Path, source: Path) -> None:
    marker = home / MARKER
    marker.write_text(str(source))
    sync_to_disk(marker)
    sync_to_disk(home)


def end_restore(home: Path) -> None:
    (home / MARKER).unlink()
    sync_to_disk(home)


def is_unfinished(home: Path) -> bool:
    return (home / MARKER).exists()


def require_no_unfinished_restore(home: Path) -> None:
    """Raise ImproperlyConfigured while a restore of this home is unfinished."""
    if is_unfinished(home):
        source = (home / MARKER).read_text()
        raise ImproperlyConfigured(
            f"INTURN_HOME: a restore of {home} is under way, or was interrupted: wait for it, or "
            f"repeat `manage.py restore --from {source}`"
        )
