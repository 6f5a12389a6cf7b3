"""URLs in older entries of the journal and in incidents' subjects lose their secrets.

The journal is large: only entries with a URL are read, a range of ids at a time, each in its own
transaction. Masked texts stay as they are: a migration that was interrupted is run again. There is
no way back to the secrets, so the reverse does nothing. Files of the archive keep older texts.
"""

from typing import Any

from django.db import migrations
from django.db.models import Max

from subscriptions.values.shown_addresses import MASK, masked_addresses

BATCH = 20_000


def mask_texts(apps: Any, schema_editor: Any) -> None:
    for model, field in (("JournalEntry", "text"), ("Incident", "subject")):
        rows = apps.get_model("delivery", model).objects
        last = rows.aggregate(last=Max("id"))["last"] or 0
        for first in range(0, last + 1, BATCH):
            having = {f"{field}__contains": "://", "id__gte": first, "id__lt": first + BATCH}
            found = list(rows.filter(**having).exclude(**{f"{field}__contains": MASK}))
            changed = [row for row in found if _mask(row, field)]
            rows.bulk_update(changed, [field], batch_size=1_000)


def _mask(row: Any, field: str) -> bool:
    """Mask the URLs in a row's field; return whether it had secrets."""
    before = getattr(row, field)
    setattr(row, field, masked_addresses(before))
    return bool(getattr(row, field) != before)


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("delivery", "0010_archive_identity_and_sums"),
        ("subscriptions", "0008_masked_url"),
    ]

    operations = [migrations.RunPython(mask_texts, migrations.RunPython.noop)]
