"""Encryption at rest of signing secrets and endpoint credentials.

Values are Fernet tokens (AES-128-CBC with HMAC-SHA256) under the first of `INTURN_ENCRYPTION_KEYS`;
the other keys only decrypt. To change the key, put the new key in front of the old, and run
`manage.py rotate_keys`, which rewrites every row.
"""

import base64
import hashlib
from functools import lru_cache
from typing import Any

import orjson
from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper


class UndecipherableError(Exception):
    """The key this value was encrypted with is not among INTURN_ENCRYPTION_KEYS."""


@lru_cache(maxsize=1)
def _cipher(keys: tuple[str, ...]) -> MultiFernet:
    # A key may be any string, but Fernet requires exactly 32 bytes in base64.
    digests = [hashlib.sha256(key.encode()).digest() for key in keys]
    return MultiFernet([Fernet(base64.urlsafe_b64encode(digest)) for digest in digests])


def cipher() -> MultiFernet:
    return _cipher(tuple(settings.ENVIRONMENT.encryption_keys))


def encrypt(value: Any) -> str:
    return cipher().encrypt(orjson.dumps(value)).decode()


def decrypt(token: str) -> Any:
    try:
        return orjson.loads(cipher().decrypt(token.encode()))
    except InvalidToken as error:
        raise UndecipherableError(
            "Stored with an encryption key that is not in INTURN_ENCRYPTION_KEYS; "
            "add that key again."
        ) from error


class EncryptedJSONField(models.TextField):  # type: ignore[type-arg]
    """A JSON value, in the database only encrypted; it cannot be searched."""

    def from_db_value(
        self, value: str | None, _expression: Any, _connection: BaseDatabaseWrapper
    ) -> Any:
        return None if value is None else decrypt(value)

    def get_prep_value(self, value: Any) -> str | None:
        return None if value is None else encrypt(value)

    def to_python(self, value: Any) -> Any:
        return value
