"""A changed server gets no stored credential, whichever way the endpoint is changed."""

from typing import Any, ClassVar

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from delivery.configuration.document.export import export_configuration
from subscriptions.checks.moved_endpoint import is_moved
from subscriptions.models import ConfigurationChange, EventType, Scope, Subscriber, Subscription
from tests.support import factories
from tests.unit.delivery.api.client import caller, created, fields_of, refused
from tests.unit.delivery.configuration.document.documents import apply, document, faults
from tests.unit.delivery.console.subscription_form import errors, form_values

OLD, NEW = "https://127.0.0.1/hook", "https://127.0.0.2/hook"
BEARER = {"type": "bearer", "token": "old-token"}
REWRITE = "/admin/subscriptions/subscription/rewrite/"


@pytest.fixture
def row(db: None) -> Subscription:
    return factories.subscription(
        "artifacts",
        subscriber=factories.subscriber("crm"),
        event_type=factories.event_type("Made"),
        endpoint=OLD,
        auth=BEARER,
        headers={"X-Key": "old-value"},
    )


@pytest.mark.parametrize(
    ("after", "moved"),
    [
        ("https://a.example/other?x=1", False),
        ("PATCH:https://A.example:443/", False),
        ("http://a.example/", True),
        ("https://a.example:8443/", True),
        ("https://a.example.org/", True),
        ("webr://", False),
        ("", False),
    ],
)
def test_a_server_is_a_scheme_a_host_and_a_port(after: str, moved: bool) -> None:
    assert is_moved("https://a.example/hook", after) is moved
    assert is_moved("webr://", "https://a.example/")


class TestRest:
    def patch(self, row: Subscription, **changed: Any) -> Any:
        return caller(Scope.MANAGE).patch(f"subscriptions/{row.pk}", changed)

    @pytest.mark.parametrize(
        ("given", "fields"),
        [
            ({}, {"auth", "headers"}),
            ({"auth": {"type": "none"}}, {"headers"}),
            ({"headers": {}}, {"auth"}),
            ({"headers": {"X-Key": "•••"}, "auth": {"type": "bearer", "token": "•••"}}, {"auth"}),
            ({"headers": {"X-Key": "•••"}, "auth": {"type": "none"}}, {"headers"}),
        ],
    )
    def test_a_new_server_needs_each_credential_again(
        self, row: Subscription, given: dict[str, Any], fields: set[str]
    ) -> None:
        answer = self.patch(row, endpoint=NEW, **given)
        assert fields <= fields_of(refused(answer, 400))
        assert "changes its server" in answer.body["detail"]
        row.refresh_from_db()
        assert (row.endpoint, row.auth) == (OLD, BEARER)

    @pytest.mark.parametrize(
        "given",
        [
            {"auth": {"type": "none"}, "headers": {}},
            {"auth": BEARER, "headers": {"X-Key": "old-value"}},
            {"auth": {"type": "basic", "username": "u", "password": "p"}, "headers": {"X-B": "1"}},
        ],
    )
    def test_they_may_be_entered_again_or_dropped(
        self, row: Subscription, given: dict[str, Any]
    ) -> None:
        assert self.patch(row, endpoint=NEW, **given).status == 200

    def test_another_path_keeps_them(self, row: Subscription) -> None:
        assert self.patch(row, endpoint=f"PUT:{OLD}/other?a=1").status == 200
        row.refresh_from_db()
        assert row.auth == BEARER

    def test_headers_of_the_subscriber_stay_with_its_servers(self, row: Subscription) -> None:
        type(row.subscriber).objects.update(headers={"X-Shared": "of-all"})
        dropped: dict[str, Any] = {"auth": {"type": "none"}, "headers": {}}
        problem = refused(self.patch(row, endpoint=NEW, **dropped), 400)
        assert "X-Shared" in problem["detail"]
        overridden = dropped | {"headers": {"x-shared": "of this"}}
        assert self.patch(row, endpoint=NEW, **overridden).status == 200
        factories.subscription(subscriber=row.subscriber, endpoint="https://127.0.0.3/hook")
        known = {"endpoint": "https://127.0.0.3/hook", "headers": {}}
        assert self.patch(row, **known).status == 200


class TestNewSubscription:
    """A new subscription does not bring the subscriber's secret headers to a server of its own."""

    SHARED: ClassVar[dict[str, str]] = {"X-Shared": "of-all"}

    @pytest.fixture
    def crm(self, row: Subscription) -> Subscriber:
        row.subscriber.headers = self.SHARED
        row.subscriber.save()
        return row.subscriber

    def body(self, **changed: Any) -> dict[str, Any]:
        made = {"name": "more", "subscriber": "crm", "event_type": "Made", "endpoint": NEW}
        return made | changed

    def test_rest_asks_for_them_at_a_new_server(self, crm: Subscriber) -> None:
        rest = caller(Scope.MANAGE)
        problem = refused(rest.post("subscriptions", self.body()), 400)
        assert fields_of(problem) == {"headers"}
        assert "X-Shared" in problem["detail"]
        assert rest.post("subscriptions", self.body(endpoint=f"{OLD}/more")).status == 201

    def test_a_server_that_got_another_value_does_not_count(self, crm: Subscriber) -> None:
        rest = caller(Scope.MANAGE)
        own = rest.post("subscriptions", self.body(headers={"x-shared": "mine"})).body
        refused(rest.patch(f"subscriptions/{own['id']}", {"headers": {}}), 400)
        refused(rest.post("subscriptions", self.body(name="third")), 400)

    def test_a_server_that_got_the_value_does(self, crm: Subscriber) -> None:
        rest = caller(Scope.MANAGE)
        own = rest.post("subscriptions", self.body(headers={"x-shared": "of-all"})).body
        assert rest.patch(f"subscriptions/{own['id']}", {"headers": {}}).status == 200
        assert rest.post("subscriptions", self.body(name="third")).status == 201

    def test_dropping_the_own_credential_does_not_send_the_shared(self, crm: Subscriber) -> None:
        crm.headers = {"Authorization": "ApiKey shared"}
        crm.save()
        rest = caller(Scope.MANAGE)
        own = created(rest.post("subscriptions", self.body(auth=BEARER)))
        refused(rest.patch(f"subscriptions/{own['id']}", {"auth": {"type": "none"}}), 400)

    def test_the_form_asks_too(self, ann: Client, crm: Subscriber) -> None:
        add = "/admin/subscriptions/subscription/add/"
        made = EventType.objects.get(name="Made")
        values = form_values(subscriber=crm, event_type=made, name="more", endpoint=NEW)
        assert "X-Shared" in errors(ann.post(add, values))["header_lines"][0]
        answer = ann.post(add, values | {"header_lines": "X-Shared: of-all"})
        assert answer.status_code == 302

    def test_a_document_asks_too_unless_it_has_their_values(self, crm: Subscriber) -> None:
        entry = {"subscriber": "crm", "name": "more", "event_type": "Made", "endpoint": NEW}
        (fault,) = faults(document(subscriptions=[entry]))
        assert (fault.object, fault.field) == ("subscription crm/more", "headers")
        subscriber = {"name": "crm", "headers": {"X-Shared": "again"}}
        apply(document(subscribers=[subscriber], subscriptions=[entry]))
        assert Subscription.objects.filter(name="more").exists()

    def test_the_first_subscription_of_a_subscriber_asks_for_nothing(self, crm: Subscriber) -> None:
        Subscription.objects.filter(subscriber=crm).delete()
        rest = caller(Scope.MANAGE)
        own = created(rest.post("subscriptions", self.body()))
        changed = rest.patch(f"subscriptions/{own['id']}", {"endpoint": f"{OLD}/other"})
        assert fields_of(refused(changed, 400)) == {"headers"}

    def test_a_document_creates_a_subscriber_with_headers(self, row: Subscription) -> None:
        entry = {"subscriber": "erp", "name": "more", "event_type": "Made", "endpoint": NEW}
        subscriber = {"name": "erp", "headers": self.SHARED}
        apply(document(subscribers=[subscriber], subscriptions=[entry]))
        assert Subscription.objects.filter(name="more").exists()


class TestForm:
    def post(self, ann: Client, row: Subscription, **changed: Any) -> Any:
        values = form_values(
            event_type=row.event_type, subscriber=row.subscriber, endpoint=NEW, **changed
        )
        return ann.post(f"/admin/subscriptions/subscription/{row.pk}/change/", values)

    @pytest.mark.parametrize(
        ("given", "field"),
        [
            ({"auth_type": "bearer", "token": "", "header_lines": ""}, "auth_type"),
            ({"auth_type": "none", "header_lines": "X-Key: •••"}, "header_lines"),
        ],
    )
    def test_a_new_server_needs_each_credential_again(
        self, ann: Client, row: Subscription, given: dict[str, Any], field: str
    ) -> None:
        (reason,) = errors(self.post(ann, row, **given))[field]
        assert "changes its server" in reason
        row.refresh_from_db()
        assert row.endpoint == OLD

    def test_they_may_be_entered_again(self, ann: Client, row: Subscription) -> None:
        answer = self.post(
            ann, row, auth_type="bearer", token="t2", header_lines="X-Key: old-value"
        )
        assert answer.status_code == 302
        row.refresh_from_db()
        assert (row.endpoint, row.auth["token"]) == (NEW, "t2")


class TestDocument:
    def moved(self, **changed: Any) -> dict[str, Any]:
        document = export_configuration(only=["subscriptions"])
        document["subscriptions"][0] |= {"endpoint": NEW} | changed
        return document

    @pytest.mark.parametrize(
        ("changed", "fields"),
        [
            ({}, ["auth", "headers"]),
            ({"headers": {}}, ["auth"]),
            ({"auth": {"type": "none"}}, ["headers"]),
        ],
    )
    def test_a_kept_reference_does_not_move(
        self, row: Subscription, changed: dict[str, Any], fields: list[str]
    ) -> None:
        assert [fault.field for fault in faults(self.moved(**changed))] == fields

    def test_a_left_out_field_does_not_move(self, row: Subscription) -> None:
        document = self.moved()
        for name in ("auth", "headers"):
            del document["subscriptions"][0][name]
        assert [fault.field for fault in faults(document)] == ["auth", "headers"]

    def test_values_that_come_with_the_document_do(self, row: Subscription) -> None:
        document = self.moved()
        entry = document["subscriptions"][0]
        references = [entry["auth"]["token"]["from"], entry["headers"]["X-Key"]["from"]]
        apply(document, secrets=dict.fromkeys(references, "again"))
        row.refresh_from_db()
        assert (row.endpoint, row.auth["token"], row.headers) == (NEW, "again", {"X-Key": "again"})


class TestBulk:
    MOVE = {"old": "https://127.0.0.1/", "new": "https://127.0.0.2/"}

    def rewrite(self, client: Client, **extra: str) -> str:
        page = client.get(REWRITE, self.MOVE | extra)
        seen = page.context["plan"].seen
        return client.post(REWRITE, self.MOVE | extra | {"seen": seen}, follow=True).text

    def test_credentials_stay_unless_an_administrator_confirms(
        self, ann: Client, row: Subscription
    ) -> None:
        page = ann.get(REWRITE, self.MOVE).text
        assert "it has stored credentials, which the new server would get" in page
        self.rewrite(ann)
        row.refresh_from_db()
        assert row.endpoint == OLD
        self.rewrite(ann, with_credentials="on")
        row.refresh_from_db()
        assert (row.endpoint, row.auth) == (NEW, BEARER)
        change = ConfigurationChange.objects.get()
        assert change.after == {"endpoint": NEW, "credentials": "kept for the new server"}

    def test_only_an_administrator_of_the_installation_may_confirm(
        self, client: Client, row: Subscription
    ) -> None:
        user = User.objects.create_user("una", is_staff=True)
        rights = ("view_subscription", "change_subscription")
        user.user_permissions.set(Permission.objects.filter(codename__in=rights))
        client.force_login(user)
        self.rewrite(client, with_credentials="on")
        row.refresh_from_db()
        assert row.endpoint == OLD

    def test_without_credentials_and_within_a_server_nothing_is_asked(
        self, ann: Client, row: Subscription
    ) -> None:
        plain = factories.subscription(endpoint=OLD)
        self.rewrite(ann)
        plain.refresh_from_db()
        assert plain.endpoint == NEW
        inside = {"old": "https://127.0.0.1/hook", "new": "https://127.0.0.1/hooks"}
        seen = ann.get(REWRITE, inside).context["plan"].seen
        ann.post(REWRITE, inside | {"seen": seen})
        row.refresh_from_db()
        assert row.endpoint == "https://127.0.0.1/hooks"
