"""The shapes of Workfront's event subscriptions: the request to create one, and answers."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from rest_framework import serializers

from delivery.api.base.strict import JSONValue, Strict, Switch, Text
from delivery.models import UrlHealth, UrlState
from delivery.vendors.workfront.encoding import BASE64_SCRIPT
from delivery.vendors.workfront.translate import VERSION
from subscriptions.models import WorkfrontSubscription
from subscriptions.values.endpoints import MAX_ENDPOINT_LENGTH

MAX_TOKEN_LENGTH = 254
MOST_IDS = 1000
SHOWN_OF_TOKEN = 4
HIDDEN_TOKEN_LENGTH = 8


class DocumentSerializer(Strict):
    """The fields that Workfront accepts; `translate_document` interprets their values."""

    objId = Text(required=False, allow_null=True, allow_blank=True, max_length=200)  # noqa: N815
    objCode = Text(max_length=30)  # noqa: N815
    eventType = Text(max_length=30)  # noqa: N815
    url = Text(max_length=MAX_ENDPOINT_LENGTH)
    authToken = Text(max_length=MAX_TOKEN_LENGTH)  # noqa: N815
    filters = JSONValue(required=False, allow_null=True)
    filterConnector = JSONValue(required=False, allow_null=True)  # noqa: N815
    base64Encoding = JSONValue(required=False, allow_null=True)  # noqa: N815
    version = JSONValue(required=False, allow_null=True)


class VersionSerializer(Strict):
    """The version of one subscription."""

    version = Text(max_length=30)


class VersionsSerializer(VersionSerializer):
    """The version of those that are named, or of all."""

    subscriptionIds = serializers.ListField(  # noqa: N815
        child=serializers.UUIDField(), required=False, allow_empty=False, max_length=MOST_IDS
    )
    allCustomerSubscriptions = Switch(required=False)  # noqa: N815

    def to_internal_value(self, data: Any) -> Any:
        """Take the ids also by the name that they have in the answer."""
        if isinstance(data, dict) and "subscriptionIds" not in data:
            named = {"subscription_ids": "subscriptionIds"}
            data = {named.get(name, name): value for name, value in data.items()}
        return super().to_internal_value(data)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if ("subscriptionIds" in attrs) == bool(attrs.get("allCustomerSubscriptions")):
            raise serializers.ValidationError(
                {"subscriptionIds": "Give subscriptionIds, or allCustomerSubscriptions: true."}
            )
        return attrs


def version_shown(row: WorkfrontSubscription) -> dict[str, str]:
    return {"id": str(row.pk), "version": VERSION}


def versions_shown(rows: Iterable[WorkfrontSubscription]) -> dict[str, Any]:
    return {"subscription_ids": [str(row.pk) for row in rows], "version": VERSION}


def shown_subscription(row: WorkfrontSubscription, health: UrlHealth | None) -> dict[str, Any]:
    """Return a subscription as an answer shows it, with its current URL, token and encoding."""
    document, subscription = row.document, row.subscription
    return {
        "id": str(row.pk),
        "date_created": subscription.created_at,
        "date_modified": subscription.updated_at,
        "dateVersionUpdated": subscription.created_at,
        "customerId": None,
        "objId": document.get("objId") or None,
        "objCode": document["objCode"],
        "url": subscription.endpoint,
        "eventType": document["eventType"],
        "authToken": masked(subscription.auth.get("token", "")),
        "filters": document.get("filters") or [],
        "filterConnector": document.get("filterConnector") or "AND",
        "base64Encoding": subscription.script == BASE64_SCRIPT,
        "version": VERSION,
        "subscription_url": _url_shown(row, health),
    }


def _url_shown(row: WorkfrontSubscription, health: UrlHealth | None) -> dict[str, Any]:
    state = None if health is None else health.state
    since = None if health is None else health.since
    return {
        "url": row.subscription.endpoint,
        "date_created": row.subscription.created_at,
        "successes": 0 if health is None else health.attempts - health.failures,
        "failures": 0 if health is None else health.failures,
        "disabled_at": since if state == UrlState.DISABLED else None,
        "frozen_at": since if state == UrlState.FROZEN else None,
    }


def masked(token: str) -> str:
    """Return the token with at most the last four characters visible; of a short token none."""
    hidden = len(token) if len(token) <= HIDDEN_TOKEN_LENGTH else len(token) - SHOWN_OF_TOKEN
    return "*" * hidden + token[hidden:]


def with_underscores(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document with the names of the deprecated list: obj_id, auth_token."""
    return {
        re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower(): value for name, value in document.items()
    }
