"""Keys in the console: created once, shown once, revoked."""

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client

from subscriptions.models import (
    ApiKey,
    ConfigurationChange,
)
from subscriptions.models.api_key import hash_of
from tests.support import factories

ROOT = "/admin/subscriptions"
NO_KEYS = {"keys-TOTAL_FORMS": "0", "keys-INITIAL_FORMS": "0"}


class TestKeys:
    def test_a_key_is_shown_once_and_only_its_hash_is_kept(self, ann: Client) -> None:
        publisher = factories.publisher()
        page = ann.post(
            f"{ROOT}/apikey/add/",
            {"scope": "publish", "publisher": publisher.pk, "name": "ci"},
            follow=True,
        )
        key = page.context["shown"]["secret"]
        assert ApiKey.objects.get().hash == hash_of(key)
        assert key in page.text
        assert key not in ann.get("/admin/shown-once/").text
        assert key not in ann.get(f"{ROOT}/publisher/{publisher.pk}/change/").text

    @pytest.mark.parametrize(
        ("scope", "owner", "field"),
        [
            ("publish", None, "publisher"),
            ("fetch", None, "subscriber"),
            ("manage", "publisher", "publisher"),
        ],
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

    def test_readers_see_no_button(self, reader: Client) -> None:
        factories.api_key()
        assert "Revoke" not in reader.get(f"{ROOT}/apikey/").text


class TestRightsToCreateKeys:
    """No user can create a key with more rights than their own."""

    @pytest.fixture
    def keeper(self, db: None) -> User:
        """A user who manages keys, and may do nothing else."""
        role = Group.objects.create(name="Keepers")
        role.permissions.set(Permission.objects.filter(codename__in=["view_apikey", "add_apikey"]))
        keeper = User.objects.create_user("kim", is_staff=True)
        keeper.groups.add(role)
        return keeper

    @pytest.fixture
    def kim(self, keeper: User) -> Client:
        client = Client()
        client.force_login(keeper)
        return client

    def test_key_administrators_create_keys_of_applications(self, kim: Client) -> None:
        assert offered(kim) == {"publish", "fetch"}
        made = {"scope": "publish", "publisher": factories.publisher().pk}
        assert kim.post(f"{ROOT}/apikey/add/", made).status_code == 302

    @pytest.mark.parametrize("scope", ["read", "manage"])
    def test_a_key_that_may_do_more_than_its_maker_is_refused(
        self, kim: Client, scope: str
    ) -> None:
        answer = kim.post(f"{ROOT}/apikey/add/", {"scope": scope})
        assert list(answer.context["adminform"].form.errors) == ["scope"]
        assert not ApiKey.objects.exists()

    def test_people_who_see_everything_create_read_keys(self, kim: Client, keeper: User) -> None:
        views = Permission.objects.filter(codename__startswith="view_")
        keeper.user_permissions.set(views.exclude(codename="view_payload"))
        assert "read" not in offered(kim)
        keeper.user_permissions.set(views)
        assert offered(kim) == {"publish", "fetch", "read"}
        assert kim.post(f"{ROOT}/apikey/add/", {"scope": "read"}).status_code == 302

    def test_people_who_may_do_everything_create_manage_keys(
        self, kim: Client, keeper: User, ann: Client
    ) -> None:
        keeper.groups.add(Group.objects.get(name="Administrators"))
        assert offered(kim) == offered(ann) == {"publish", "fetch", "read", "manage"}
        assert kim.post(f"{ROOT}/apikey/add/", {"scope": "manage"}).status_code == 302
        assert "keys with rights that you have" not in kim.get(f"{ROOT}/apikey/add/").text


def offered(person: Client) -> set[str]:
    field = person.get(f"{ROOT}/apikey/add/").context["adminform"].form.fields["scope"]
    return {value for value, _ in field.choices if value}
