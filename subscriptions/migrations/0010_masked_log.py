"""Addresses in older entries of the configuration log lose their secrets, as in newer ones.

A batch is a transaction, and masked values stay as they are: a migration that was interrupted is
run again. There is no way back to the secrets, so the reverse does nothing.
"""

from typing import Any

from django.db import migrations
from django.db.models import Q

from subscriptions.values.shown_addresses import MASK, named_secret_address, recorded_address

BATCH = 1_000
ADDRESSES = ("endpoint", "probe_url")
CHATS = "chat_urls"


def mask_log(apps: Any, schema_editor: Any) -> None:
    names, last = [*ADDRESSES, CHATS], 0
    having = Q(before__has_any_keys=names) | Q(after__has_any_keys=names)
    changes = apps.get_model("subscriptions", "ConfigurationChange").objects.filter(having)
    while rows := list(changes.filter(id__gt=last).order_by("id")[:BATCH]):
        for row in rows:
            row.before, row.after = masked(row.before), masked(row.after)
        changes.model.objects.bulk_update(rows, ["before", "after"])
        last = rows[-1].pk


def masked(values: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the values of an entry with its addresses masked."""
    return values and {name: _shown(name, value) for name, value in values.items()}


def _shown(name: str, value: Any) -> Any:
    if name in ADDRESSES and isinstance(value, str) and MASK not in value:
        return recorded_address(value)
    if name == CHATS and isinstance(value, list):
        return [named_secret_address(url) if "://" in str(url) else url for url in value]
    return value


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("subscriptions", "0009_url_key_of_incidents")]

    operations = [migrations.RunPython(mask_log, migrations.RunPython.noop)]
