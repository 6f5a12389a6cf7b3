"""Endpoints as a sender needs them: subscription rows as plain values, secrets decrypted."""

import base64
from collections.abc import Mapping
from typing import Any

from delivery.senders.http.signing import signing_key
from delivery.senders.parcel import Endpoint
from delivery.states import OutcomeClass
from delivery.verdict import RetrySchedule, Rules
from subscriptions.models import InDoubt, UsedUp
from subscriptions.models import Schedule as ScheduleKind
from subscriptions.scripts.includes import Library, inlined_script
from subscriptions.values.encryption import UndecipherableError, decrypt
from subscriptions.values.endpoints import INTERNAL, parse_endpoint
from subscriptions.values.header_values import with_shared
from subscriptions.values.number_lists import seconds_listed, success_codes


def endpoint_of(row: Mapping[str, Any]) -> Endpoint:
    """Make an Endpoint from a row of `endpoints.sql`; a configuration error becomes its `fault`."""
    method, url, fault = "POST", "", ""
    headers: dict[str, str] = {}
    keys: tuple[bytes, ...] = ()
    try:
        method, url = _target(row["endpoint"])
        headers = _headers(row)
        keys = tuple(signing_key(decrypt(secret)) for secret in row["secrets"])
    except (UndecipherableError, ValueError) as error:
        fault = f"cannot be sent: {error}"
    return Endpoint(
        subscription_id=row["id"],
        lane_id=row["lane_id"],
        version=row["version"],
        is_active=row["is_active"],
        is_disabled=row["is_disabled"],
        method=method,
        url=url,
        headers=headers,
        signing_keys=keys,
        timeout_seconds=row["timeout_seconds"],
        rules=rules_of(row),
        probe_url=row["probe_url"],
        forward_headers=tuple(row["forward_headers"]),
        forwards_authorization=row["forward_authorization"],
        fault=fault,
        is_held_whole=row["is_held_whole"],
        script=inlined_script(row["script"], _library(row)),
        script_version=row["script_version"],
    )


def _library(row: Mapping[str, Any]) -> Library:
    """Return the common scripts that the subscription's script may include."""
    names = row["common_names"] or []
    return Library(
        dict(zip(names, row["common_texts"] or [], strict=True)), first=row["common_first"] or ()
    )


def rules_of(row: Mapping[str, Any]) -> Rules:
    """Make Rules from the columns of a policy."""
    return Rules(
        name=row["name"],
        success_codes=success_codes(row["success_codes"]),
        actions={
            OutcomeClass.TIMEOUT: row["on_unreachable"],
            OutcomeClass.UNREACHABLE: row["on_unreachable"],
            OutcomeClass.TLS: row["on_unreachable"],
            OutcomeClass.REFUSED_ADDRESS: row["on_unreachable"],
            OutcomeClass.UNAVAILABLE: row["on_unavailable"],
            OutcomeClass.SERVER_ERROR: row["on_server_error"],
            OutcomeClass.RATE_LIMITED: row["on_rate_limited"],
            OutcomeClass.CLIENT_ERROR: row["on_client_error"],
            OutcomeClass.REDIRECT: row["on_redirect"],
        },
        stays_in_doubt=row["in_doubt"] == InDoubt.HOLD,
        blocks_when_overloaded=row["blocks_when_overloaded"],
        pause_seconds=row["pause_seconds"],
        pause_max_seconds=row["pause_max_seconds"],
        retry_after_max_seconds=row["retry_after_max_seconds"],
        schedule=schedule_of(row),
        suspends_on_reject=row["suspends_on_reject"],
        probe_seconds=row["probe_seconds"],
        breaks_circuit=row["breaks_circuit"],
    )


def schedule_of(row: Mapping[str, Any]) -> RetrySchedule:
    return RetrySchedule(
        seconds=row["retry_seconds"],
        is_exponential=row["retry_schedule"] == ScheduleKind.EXPONENTIAL,
        jitter=row["retry_jitter"],
        max_attempts=row["max_attempts"],
        suspends=row["when_used_up"] == UsedUp.SUSPEND,
        waits=seconds_listed(row["retry_waits"])
        if row["retry_schedule"] == ScheduleKind.LISTED
        else (),
    )


def _target(endpoint: str) -> tuple[str, str]:
    """Return method and URL.

    For a SYNC subscription answered by its script the URL cannot be called.
    """
    if endpoint == INTERNAL:
        return "POST", INTERNAL
    parsed = parse_endpoint(endpoint)
    return parsed.method, parsed.url


def _headers(row: Mapping[str, Any]) -> dict[str, str]:
    auth = decrypt(row["auth"]) or {}
    kind = auth.get("type", "none")
    shared = None if row["subscriber_headers"] is None else decrypt(row["subscriber_headers"])
    has_credential = kind != "none" or row["forward_authorization"]
    headers = with_shared(decrypt(row["headers"]) or {}, shared, has_credential=has_credential)
    match kind:
        case "basic":
            pair = f"{auth['username']}:{auth['password']}".encode()
            headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
        case "bearer":
            headers["Authorization"] = f"Bearer {auth['token']}"
        case _:
            pass
    return headers
