"""The effective settings, for people: with their sources, and no secrets."""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from config.bootstrap import ENTERED
from config.env import read_settings
from config.env_values import DEFAULT, EnvReader, FoundSetting
from config.up.processes import MARKER

SECRETS = {
    "INTURN_ADMIN_PASSWORD",
    "INTURN_BOOTSTRAP_KEY",
    "INTURN_ENCRYPTION_KEYS",
    "INTURN_FETCH_KEY",
    "INTURN_SECRET_KEY",
    "INTURN_SMTP_PASSWORD",
}
# Kept in the home if they are not given.
KEPT = {"INTURN_ENCRYPTION_KEYS", "INTURN_SECRET_KEY"}
# Of Inturn's own processes and tests.
_NOT_SETTINGS = (MARKER, ENTERED, "INTURN_TEST_")

_CREDENTIALS = re.compile(r"(?<=://)[^/\s\"'@]*@")
# It begins with the last part of the name: a pattern for the whole name would read a long word
# again from each letter.
_NAMED_SECRET = re.compile(r"((?:password|passwd|secret|token|key)=)[^&;\s\"']+", re.IGNORECASE)


def effective_settings(environment: Mapping[str, str] = os.environ) -> list[FoundSetting]:
    """Return all settings, ordered by name, with secrets hidden; raises ImproperlyConfigured."""
    reader = EnvReader(environment)
    read = read_settings(reader)
    found = reader.found | {
        # They depend on others, or on a running server.
        "INTURN_HOME": replace(reader.found["INTURN_HOME"], value=str(read.home)),
        "INTURN_BASE_URL": replace(reader.found["INTURN_BASE_URL"], value=read.base_url),
        "HISTORY_URL": replace(reader.found["HISTORY_URL"], value=read.history_url),
        "SPARK_MASTER": replace(
            reader.found["SPARK_MASTER"], value="" if read.spark_remote else read.spark_master
        ),
        "DATABASE_URL": replace(reader.found["DATABASE_URL"], value=read.database_url),
    }
    return [_shown(found[name]) for name in sorted(found)]


def unknown_settings(environment: Mapping[str, str] = os.environ) -> Iterator[str]:
    """Yield variables that look like settings and are none: misspelt, or of another version."""
    reader = EnvReader(environment)
    read_settings(reader)
    known = {*reader.found, *(f"{name}_FILE" for name in reader.found)}
    for name in sorted(environment):
        if name.startswith("INTURN_") and name not in known and not name.startswith(_NOT_SETTINGS):
            yield name


def without_credentials(text: str) -> str:
    """Return a text, such as a URL or a log, without passwords, keys and tokens in URLs."""
    return _NAMED_SECRET.sub(r"\1***", _CREDENTIALS.sub("***@", text))


def _shown(setting: FoundSetting) -> FoundSetting:
    if setting.name not in SECRETS:
        return replace(setting, value=without_credentials(setting.value) or _absent(setting))
    if setting.source == DEFAULT:
        return replace(setting, value="(kept in the home)" if setting.name in KEPT else "(not set)")
    return replace(setting, value="(hidden)")


def _absent(setting: FoundSetting) -> str:
    return "(embedded, not running)" if setting.name == "DATABASE_URL" else "(not set)"
