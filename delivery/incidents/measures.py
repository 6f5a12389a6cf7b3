"""The measures outside the tables: the free disk of this machine, the size of the database."""

import shutil

from django.conf import settings
from django.db import connection

from delivery.models import IncidentKind, IncidentRule

_GIGABYTE = 10**9


def measured_causes() -> list[str]:
    """Return the kinds whose measure exceeds the bound of their rule."""
    bounds = dict(
        IncidentRule.objects.filter(
            kind__in=(IncidentKind.DISK, IncidentKind.DATABASE), is_on=True, bound__gt=0
        ).values_list("kind", "bound")
    )
    found = []
    if IncidentKind.DISK in bounds and free_percent() < (bounds[IncidentKind.DISK] or 0):
        found.append(IncidentKind.DISK.value)
    if IncidentKind.DATABASE in bounds and gigabytes() > (bounds[IncidentKind.DATABASE] or 0):
        found.append(IncidentKind.DATABASE.value)
    return found


def free_percent() -> float:
    """Return the free share of the disk with Inturn's home, on the machine of the chores."""
    usage = shutil.disk_usage(settings.ENVIRONMENT.home)
    return 100 * usage.free / usage.total


def gigabytes() -> float:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_database_size(current_database())")
        row = cursor.fetchone()
    assert row is not None
    return float(row[0]) / _GIGABYTE


def measure_in_words(kind: IncidentKind) -> str:
    if kind == IncidentKind.DISK:
        return f"{free_percent():.0f} % of the disk with {settings.ENVIRONMENT.home} are free"
    return f"It has {gigabytes():,.1f} GB"
