"""Keys in the console: made once, shown once, revoked."""

import pytest
from django.test import Client

from subscriptions.models import (
    ApiKey,
    ConfigurationChange,
)
from subscriptions.models.api_key import hash_of
from tests import factories

ROOT = "/admin/subscriptions"
NO_KEYS = {"keys-TOTAL_FORMS": "0", "keys-INITIAL_FORMS": "0"}


class TestKeys:
    def test_a_key_is_shown_once_and_only_its_hash_is_kept(self, ann: Client) -> None:
        publisher = factories.publisher()
        page = ann.post(
            f"{ROOT}/apikey/add/", {"scope": "publish", "publisher": publisher.pk, "name": "ci"}, follow=True
        )
        key = page.context["shown"]["secret"]
        assert ApiKey.objects.get().hash == hash_of(key)
        assert key in page.text
        assert key not in ann.get("/admin/shown-once/").text
        assert key not in ann.get(f"{ROOT}/publisher/{publisher.pk}/change/").text

    @pytest.mark.parametrize(
        ("scope", "owner", "field"),
        [("publish", None, "publisher"), ("fetch", None, "subscriber"), ("manage", "publisher", "publisher")],
    )
    def test_an_owner_that_does_not_fit_the_scope_is_refused(
        self, ann: Client, scope: str, owner: str | None, field: str
    ) -> None:
        owners = {owner: factories.publisher().pk} if owner else {}
        answer = ann.post(f"{ROOT}/apikey/add/", {"scope": scope} | owners)
        assert list(answer.context["adminform"].form.errors) == [field]

    def test_a_revoked_key_stays_in_the_list(self, ann: Client) -> None:
        key, _ = factories.api_key()
        ann.post(f"{ROOT}/apikey/{key.pk}/revoke/")
        key.refresh_from_db()
        assert key.revoked_at is not None
        assert ">revoked <time" in ann.get(f"{ROOT}/apikey/").text.replace("\n", "")
        assert ConfigurationChange.objects.get().action == "revoked"

    def test_who_may_only_read_sees_no_button(self, reader: Client) -> None:
        factories.api_key()
        assert "Revoke" not in reader.get(f"{ROOT}/apikey/").text
