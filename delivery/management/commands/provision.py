"""`provision`: create the administrator and the bootstrap key from the environment.

Without INTURN_ADMIN_PASSWORD the password is random.
"""

import secrets
from datetime import datetime
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.db import IntegrityError, transaction
from django.utils import timezone

from subscriptions import changes
from subscriptions.models import ApiKey, Scope
from subscriptions.models.api_key import hash_of

ADMINISTRATOR = "admin"
BOOTSTRAP_KEY_NAME = "INTURN_BOOTSTRAP_KEY"
ACTOR = "provision"


class Command(BaseCommand):
    help = "Create the administrator and the bootstrap key unless they exist. May be repeated."

    def handle(self, *args: Any, **options: Any) -> None:
        configured: str = settings.ENVIRONMENT.admin_password
        password = configured or secrets.token_urlsafe(15)
        if create_administrator(password):
            shown = "of INTURN_ADMIN_PASSWORD" if configured else password
            self.stdout.write(f"administrator {ADMINISTRATOR}, password {shown}")
        if settings.ENVIRONMENT.bootstrap_key:
            key = install_bootstrap_key(settings.ENVIRONMENT.bootstrap_key, now=timezone.now())
            if key.revoked_at is not None:
                self.stdout.write(
                    f"INTURN_BOOTSTRAP_KEY: the key …{key.hint} was revoked at "
                    f"{key.revoked_at:%Y-%m-%d %H:%M} UTC and stays revoked; set another, "
                    "or unset it"
                )


def create_administrator(password: str) -> bool:
    """Create the first administrator; False if a user exists, whose password stays."""
    users = get_user_model().objects
    if users.filter(username=ADMINISTRATOR).exists():
        return False
    try:
        validate_password(password, user=get_user_model()(username=ADMINISTRATOR))
        with transaction.atomic():
            users.create_superuser(ADMINISTRATOR, password=password)
    except ValidationError as error:
        raise CommandError(f"INTURN_ADMIN_PASSWORD: {' '.join(error.messages)}") from None
    except IntegrityError:
        # Another machine started at the same moment has created it.
        return False
    return True


def install_bootstrap_key(text: str, *, now: datetime) -> ApiKey:
    """Make this the bootstrap key, with scope manage, expire all earlier keys, and return it.

    An expired key works again when INTURN_BOOTSTRAP_KEY is set back to it. A revoked key stays
    revoked, because only people revoke keys.
    """
    with transaction.atomic():
        key, is_new = ApiKey.objects.get_or_create(
            hash=hash_of(text),
            defaults={"name": BOOTSTRAP_KEY_NAME, "scope": Scope.MANAGE, "hint": text[-4:]},
        )
        if is_new:
            changes.record_change(
                actor=ACTOR,
                action="created",
                instance=key,
                before=None,
                after=changes.snapshot(key),
            )
        elif key.expires_at is not None:
            _set_expiry(key, None)
        for older in ApiKey.objects.filter(name=BOOTSTRAP_KEY_NAME, expires_at=None).exclude(
            pk=key.pk
        ):
            _set_expiry(older, now)
    return key


def _set_expiry(key: ApiKey, moment: datetime | None) -> None:
    before = changes.snapshot(key)
    key.expires_at = moment
    key.save(update_fields=["expires_at"])
    action = "restored" if moment is None else "replaced"
    changes.record_change(
        actor=ACTOR, action=action, instance=key, before=before, after=changes.snapshot(key)
    )
