"""The settings of a database session on which the promises rest. No Django.

A server, a database or a role may have other defaults: with `synchronous_commit = off` a message
would be answered with 202 before it is on disk, and other values make psycopg or a long statement
fail. Each connection therefore executes SESSION first. The startup parameter `options` could set
the same, but poolers drop it.
"""

from collections.abc import Mapping

# `synchronous_commit` is changed only if it is off: the other values wait for the disk, too.
PROMISED: Mapping[str, str] = {
    "synchronous_commit": "on",
    "default_transaction_isolation": "read committed",
    "standard_conforming_strings": "on",
    "datestyle": "ISO, MDY",
    "intervalstyle": "postgres",
    "timezone": "UTC",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    # A part in need of a limit sets it for itself.
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "idle_session_timeout": "0",
    # PostgreSQL 17 and later.
    "transaction_timeout": "0",
}
_VALUES = ", ".join(f"('{name}', '{value}')" for name, value in PROMISED.items())
_DIFFERING = f"""
    (VALUES {_VALUES}) AS promised (name, value)
    WHERE current_setting(name, true) <> value
    AND (name <> 'synchronous_commit' OR current_setting(name) = 'off')
"""
# A single statement, without parameters, for any driver. It changes only settings with other
# values.
SESSION = f"SELECT set_config(name, value, false) FROM {_DIFFERING}"  # noqa: S608
# Name and value of each setting other than promised.
OTHERS = f"SELECT name, current_setting(name) FROM {_DIFFERING}"  # noqa: S608
