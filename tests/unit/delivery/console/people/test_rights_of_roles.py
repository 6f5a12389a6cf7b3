"""The roles that a migration creates, and the users who have them."""

from importlib import import_module
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, Permission, User
from django.db import connection
from django.test import Client

from delivery.console.people import role_words
from delivery.console.people.rights import with_a_page
from subscriptions.models import ConfigurationChange

OURS = ("delivery", "subscriptions", "auth")


OWN = {"delivery.view_ownmessage", "delivery.view_owndelivery"}


def rights_of(role: str) -> set[str]:
    return role_words.names_of(
        Group.objects.get(name=role).permissions.select_related("content_type")
    )


def all_rights() -> set[str]:
    return role_words.names_of(
        Permission.objects.filter(content_type__app_label__in=OURS).select_related("content_type")
    )


def views() -> set[str]:
    return {right for right in all_rights() if right.partition(".")[2].startswith("view_")}


@pytest.mark.django_db
class TestMigration:
    def test_administrators_may_do_everything(self) -> None:
        assert rights_of("Administrators") == all_rights()

    def test_auditors_see_everything_and_change_nothing(self) -> None:
        assert rights_of("Auditors") == views() - OWN | {"delivery.make_report"}

    def test_developers_see_their_own(self) -> None:
        assert rights_of("Developers") == OWN | {"delivery.view_payload"}

    def test_support_sees_everything_and_rescues(self) -> None:
        assert rights_of("Support") - views() == {
            "delivery.change_delivery",
            "delivery.change_incident",
            "delivery.add_resubmission",
            "delivery.change_resubmission",
            "delivery.change_lane",
            "delivery.change_urlhealth",
            "delivery.make_report",
            "subscriptions.toggle_subscription",
        }
        assert views() - OWN <= rights_of("Support")

    def test_an_existing_role_keeps_its_rights(self) -> None:
        Group.objects.all().delete()
        mine = Group.objects.create(name="Support")
        mine.permissions.add(Permission.objects.get(codename="add_policy"))
        migration: Any = import_module("delivery.migrations.0005_roles_and_permissions")
        with connection.schema_editor() as editor:
            migration.make_roles(_Historic(), editor)
        assert {"subscriptions.add_policy", "delivery.change_lane"} <= rights_of("Support")
        assert {"Administrators", "Support", "Auditors", "Developers"} == set(
            Group.objects.values_list("name", flat=True)
        )

    def test_makes_no_permission_twice_nor_under_another_name(self) -> None:
        named = Permission.objects.filter(
            content_type__app_label="delivery", codename="view_payloadview"
        )
        assert [permission.name for permission in named] == ["Can view payload view"]


class _Historic:
    """Today's models, with the interface that migrations use."""

    get_model = staticmethod(apps.get_model)
    get_app_config = staticmethod(apps.get_app_config)


class TestPeople:
    def test_are_made_with_a_role_and_can_sign_in(self, ann: Client) -> None:
        role = Group.objects.get(name="Support")
        password = "correct horse battery"
        given = {
            "username": "sue",
            "password1": password,
            "password2": password,
            "groups": [role.pk],
        }
        given |= {"usable_password": "true"}
        assert ann.post("/admin/auth/user/add/", given).status_code == 302
        sue = User.objects.get(username="sue")
        assert sue.is_staff
        assert list(sue.groups.all()) == [role]
        change = ConfigurationChange.objects.get()
        assert change.after is not None
        assert change.after["groups"] == ["Support"]

    def test_the_form_explains_each_role(self, ann: Client) -> None:
        page = ann.get("/admin/auth/user/add/").text
        assert "Administrators: everything" in page
        assert "Changes nothing." in page
        assert (
            "Makes subscriptions and subscribers ACTIVE, HELD and INACTIVE, "
            "and subscriptions SHADOW." in page
        )

    def test_nobody_grants_more_than_they_have(self, db: None) -> None:
        adam = User.objects.create_user("adam", is_staff=True)
        adam.groups.add(Group.objects.get(name="Administrators"))
        root = User.objects.create_superuser("root", password="x")
        client = Client()
        client.force_login(adam)
        client.post(f"/admin/auth/user/{adam.pk}/change/", _given(adam) | {"is_superuser": "on"})
        assert not User.objects.get(pk=adam.pk).is_superuser
        new = {"password1": "another long password", "password2": "another long password"}
        assert client.post(f"/admin/auth/user/{root.pk}/password/", new).status_code == 403
        assert (
            client.post(f"/admin/auth/user/{root.pk}/delete/", {"post": "yes"}).status_code == 403
        )

    def test_nobody_locks_themselves_out(self, ann: Client) -> None:
        me = User.objects.get(username="ann")
        given = _given(me) | {"is_superuser": "on"}
        del given["is_active"]
        assert (
            "You would lock out yourself"
            in ann.post(f"/admin/auth/user/{me.pk}/change/", given).text
        )
        assert ann.post(f"/admin/auth/user/{me.pk}/delete/", {"post": "yes"}).status_code == 403
        assert User.objects.get(pk=me.pk).is_active

    def test_the_list_shows_each_persons_rights(self, ann: Client) -> None:
        User.objects.create_user("una", is_staff=True)
        User.objects.create_user("adi", is_staff=True).groups.add(
            Group.objects.get(name="Auditors")
        )
        page = ann.get("/admin/auth/user/").text
        for said in ("none", "Auditors", "everything"):
            assert said in page
        auditors = Group.objects.get(name="Auditors")
        page = ann.get("/admin/auth/user/", {"groups__id__exact": auditors.pk}).text
        assert "adi" in page
        assert "una" not in page


LEADS = (
    "view_user",
    "add_user",
    "change_user",
    "delete_user",
    "view_group",
    "change_group",
    "delete_group",
)


class TestLeads:
    """They manage users and roles, and may do nothing else."""

    @pytest.fixture
    def lena(self, db: None) -> User:
        leads = Group.objects.create(name="Leads")
        leads.permissions.set(
            Permission.objects.filter(codename__in=LEADS, content_type__app_label="auth")
        )
        lena = User.objects.create_user("lena", is_staff=True)
        lena.groups.add(leads)
        return lena

    @pytest.fixture
    def lead(self, lena: User) -> Client:
        client = Client()
        client.force_login(lena)
        return client

    @pytest.fixture
    def adam(self, db: None) -> User:
        adam = User.objects.create_user("adam", is_staff=True)
        adam.groups.add(Group.objects.get(name="Administrators"))
        return adam

    def test_grant_their_own_roles(self, lead: Client, lena: User) -> None:
        una = User.objects.create_user("una", is_staff=True)
        leads = Group.objects.get(name="Leads")
        given = _given(una) | {"groups": [leads.pk]}
        assert lead.post(f"/admin/auth/user/{una.pk}/change/", given).status_code == 302
        assert list(una.groups.all()) == [leads]

    def test_cannot_grant_a_role_with_more_rights(self, lead: Client, lena: User) -> None:
        address = f"/admin/auth/user/{lena.pk}/change/"
        page = lead.get(address).text
        assert "Leads: " in page
        assert "Administrators: " not in page
        assert "You can grant only roles" in page
        administrators = Group.objects.get(name="Administrators")
        page = lead.post(address, _given(lena) | {"groups": [administrators.pk]}).text
        assert "is not one of the available choices" in page
        assert [group.name for group in lena.groups.all()] == ["Leads"]

    @pytest.mark.parametrize("is_active", [True, False])
    def test_cannot_change_people_with_more_rights(
        self, lead: Client, adam: User, is_active: bool
    ) -> None:
        User.objects.filter(pk=adam.pk).update(is_active=is_active)
        address = f"/admin/auth/user/{adam.pk}"
        new = {"password1": "another long password", "password2": "another long password"}
        assert lead.get(f"{address}/change/").status_code == 200
        assert lead.post(f"{address}/change/", _given(adam)).status_code == 403
        assert lead.post(f"{address}/password/", new).status_code == 403
        assert lead.post(f"{address}/delete/", {"post": "yes"}).status_code == 403

    def test_cannot_add_a_right_that_they_do_not_have(self, lead: Client) -> None:
        leads = Group.objects.get(name="Leads")
        payloads = Permission.objects.get(codename="view_payload")
        address = f"/admin/auth/group/{leads.pk}/change/"
        assert payloads.name not in lead.get(address).text
        given = {"name": "Leads", "permissions": [payloads.pk]}
        assert "is not one of the available choices" in lead.post(address, given).text
        assert payloads not in leads.permissions.all()

    def test_cannot_change_a_role_with_more_rights(self, lead: Client) -> None:
        auditors = Group.objects.get(name="Auditors")
        address = f"/admin/auth/group/{auditors.pk}"
        assert lead.get(f"{address}/change/").status_code == 200
        assert lead.post(f"{address}/change/", {"name": "Auditors"}).status_code == 403
        assert lead.post(f"{address}/delete/", {"post": "yes"}).status_code == 403
        assert auditors.permissions.exists()


class TestWords:
    def test_there_is_one_for_each_action(self, ann: Client) -> None:
        page = ann.get("/admin/auth/group/add/")
        offered = dict(page.context["adminform"].form.fields["sentences"].choices)
        assert offered["subscriptions.change_installation"] == "Holds all sending"
        assert offered.keys() == role_words.bundles(all_rights()).keys()

    def test_follow_the_rights(self, ann: Client) -> None:
        auditors = Group.objects.get(name="Auditors")
        address = f"/admin/auth/group/{auditors.pk}/change/"
        assert {"pages", "delivery.view_payload"} <= ticked(ann, address)
        auditors.permissions.remove(Permission.objects.get(codename="view_payload"))
        assert "delivery.view_payload" not in ticked(ann, address)

    def test_a_ticked_sentence_gives_its_rights_and_an_unticked_one_takes_them(
        self, ann: Client
    ) -> None:
        auditors = Group.objects.get(name="Auditors")
        address = f"/admin/auth/group/{auditors.pk}/change/"
        sentences = ticked(ann, address) - {"delivery.make_report"}
        given = {
            "name": "Auditors",
            "sentences": [*sentences, "subscriptions.change_policy"],
            "permissions": [permission.pk for permission in with_a_page().filter(group=auditors)],
        }
        assert ann.post(address, given).status_code == 302
        rights = rights_of("Auditors")
        assert "delivery.make_report" not in rights
        assert {f"subscriptions.{verb}_policy" for verb in ("add", "change", "delete")} <= rights
        assert "delivery.view_message" in rights

    @pytest.mark.parametrize(
        ("rights", "said"),
        [
            (set(), ["Sees nothing.", "Changes nothing."]),
            ({"delivery.change_lane"}, ["Sees nothing.", "Unblocks lanes: retry, skip, resume."]),
        ],
    )
    def test_a_small_role_has_a_short_description(self, rights: set[str], said: list[str]) -> None:
        assert role_words.role_sentences(rights) == said


def ticked(client: Client, address: str) -> set[str]:
    """Return the keys of the sentences that are ticked in a role's form."""
    form = client.get(address).context["adminform"].form
    return set(form["sentences"].initial)


def _given(user: User) -> dict[str, Any]:
    return {
        "username": user.username,
        "is_active": "on",
        "groups": [group.pk for group in user.groups.all()],
    }
