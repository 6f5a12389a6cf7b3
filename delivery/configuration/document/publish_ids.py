"""Publish ids of publishers in a document: which of them are new.

Only hashes are stored, so no export has them. A document with the publisher's present id changes
nothing.
"""

from collections import Counter

from django.utils import timezone

from subscriptions.models import PublishId
from subscriptions.models.api_key import hash_of
from subscriptions.publish_ids import MAX_VALID, PublishIdRefusedError


class KnownPublishIds:
    """The stored ids, and the document's; loaded when it gives the first."""

    def __init__(self) -> None:
        self._owners: dict[str, str] | None = None
        self._valid: set[str] = set()
        self._count: Counter[str] = Counter()

    def has_valid(self, publisher: str) -> bool:
        self._load()
        return self._count[publisher] > 0

    def is_new(self, text: str, *, publisher: str) -> bool:
        """Return False if the publisher has it; raise PublishIdRefusedError if it cannot get it."""
        owners = self._load()
        hashed = hash_of(text)
        if owners.get(hashed) == publisher and hashed in self._valid:
            return False
        if hashed in owners:
            raise PublishIdRefusedError(
                f"This publish id is in use, or was, by {owners[hashed]}. Give another, "
                "or leave it out."
            )
        if self._count[publisher] >= MAX_VALID:
            raise PublishIdRefusedError(
                f"{MAX_VALID} publish ids of {publisher} are valid. End one first."
            )
        owners[hashed] = publisher
        return True

    def _load(self) -> dict[str, str]:
        if self._owners is None:
            rows = PublishId.objects.order_by()
            self._owners = dict(rows.values_list("hash", "publisher__name"))
            valid = rows.valid(now=timezone.now()).values_list("hash", "publisher__name")
            for hashed, publisher in valid:
                self._valid.add(hashed)
                self._count[publisher] += 1
        return self._owners
