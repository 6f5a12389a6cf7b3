"""Whether any row behind a plan has changed: by PostgreSQL's versions.

To draft a plan takes far longer than to read these: ten thousand entries are checked field by
field. A row's `xmin` and `ctid` differ after each change, by whatever way it was made.
"""

from django.db.models import Model
from django.db.models.expressions import RawSQL

from delivery.configuration.document.document import SECTIONS
from subscriptions.models import Publisher, PublishId

# By table: primary key, transaction and place of each row.
Versions = dict[str, list[tuple[int, str, str]]]

_MODELS: tuple[type[Model], ...] = (
    *(section.model for section in SECTIONS),
    Publisher.event_types.through,
    PublishId,
)


def row_versions() -> Versions:
    """Call it before the draft: a row changed meanwhile has another version afterwards."""
    xmin, ctid = RawSQL("xmin::text", ()), RawSQL("ctid::text", ())
    return {
        model._meta.db_table: list(model._base_manager.order_by("pk").values_list("pk", xmin, ctid))
        for model in _MODELS
    }
