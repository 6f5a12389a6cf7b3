"""Recording configuration changes: the fields of a row before and after."""

from typing import Any

from django.db import models

from subscriptions.models import ConfigurationChange
from subscriptions.values.shown_addresses import recorded_address

MASKED = "•••"
SECRET_FIELDS = frozenset(
    {"auth", "headers", "secret", "hash", "password", "queue_password", "publish_id", "chat_urls"}
)
# Everybody who may read the log sees them without their secrets.
ADDRESS_FIELDS = frozenset({"endpoint", "probe_url"})
UNRECORDED_FIELDS = frozenset(
    {
        "id",
        "created_at",
        "updated_at",
        "changed_in",
        "last_used_at",
        "last_login",
        "date_joined",
        "filter_identity",
        "cancellation_id",
    }
)


def snapshot(instance: models.Model) -> dict[str, Any]:
    """Return a row's fields as JSON; a secret is shown only as set or not set."""
    return {
        field.name: _value(field, instance)
        for field in instance._meta.concrete_fields
        if field.name not in UNRECORDED_FIELDS
    }


def record_change(
    *,
    actor: str,
    action: str,
    instance: models.Model,
    before: dict[str, Any] | None,
    after: dict[str, Any] | None,
) -> None:
    """Add a change to the configuration log; call it in the transaction of the change itself.

    If both snapshots are given, only differing fields are stored.
    """
    change_of(actor=actor, action=action, instance=instance, before=before, after=after).save()


def change_of(
    *,
    actor: str,
    action: str,
    instance: models.Model,
    before: dict[str, Any] | None,
    after: dict[str, Any] | None,
) -> ConfigurationChange:
    """Return `record_change`'s entry, unsaved, for code with many at once.

    Senders are notified only of singly saved entries.
    """
    if before is not None and after is not None:
        differing = {name for name in after if before.get(name) != after[name]}
        before = {name: before.get(name) for name in differing}
        after = {name: after[name] for name in differing}
    return ConfigurationChange(
        actor=actor,
        action=action,
        object_type=str(instance._meta.verbose_name),
        object_name=str(instance)[:450],
        before=before,
        after=after,
    )


def record_new_password(user: models.Model, *, actor: str) -> None:
    record_change(
        actor=actor,
        action="changed",
        instance=user,
        before={},
        after={"password": f"{MASKED}, new value"},
    )


def _value(field: "models.Field[Any, Any]", instance: models.Model) -> Any:
    if isinstance(field, models.ForeignKey):
        related = getattr(instance, field.name)
        return None if related is None else str(related)
    value = getattr(instance, field.attname)
    if field.name in SECRET_FIELDS:
        return MASKED if value else None
    if field.name in ADDRESS_FIELDS:
        return recorded_address(value)
    return value if isinstance(value, str | int | bool | dict | list | None) else str(value)
