"""Secrets in addresses: of chats for nobody, of endpoints only for people who may change them."""

from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection
from django.test import Client
from django.utils import timezone

from delivery.console.incidents.rules import chats_in_words
from delivery.incidents.announcements import IncidentChange, incident_body
from delivery.incidents.facts import read_facts, subject_of
from delivery.models import Incident, IncidentKind, IncidentRule, Lane, UrlHealth, UrlState
from delivery.states import Status
from subscriptions.changes import record_change, snapshot
from subscriptions.models import ConfigurationChange, Scope, Subscription
from subscriptions.values.shown_addresses import named_secret_address, secret_address_key
from tests.support import factories
from tests.unit.delivery.api.client import caller

CHAT = "https://127.0.0.1/services/T00/CHATSECRET99"
TOKEN, PART = "URLSECRET55", "Pa7hS3cr3tPartOfTheUrl"
ENDPOINT = f"https://receiver.example/hook/{PART}?token={TOKEN}"
RULE = f"/admin/delivery/incidentrule/{IncidentKind.LANE}/change/"


@pytest.fixture(params=["Support", "Auditors"])
def staff(request: pytest.FixtureRequest, db: None) -> Client:
    user = User.objects.create_user("una", is_staff=True)
    user.groups.add(Group.objects.get(name=request.param))
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def row(db: None) -> Subscription:
    return factories.subscription("orders", endpoint=ENDPOINT, probe_url=ENDPOINT)


def has_secret(text: str) -> bool:
    return TOKEN in text or PART in text


class TestChats:
    def save(self, client: Client, chats: str) -> Any:
        given = {"is_on": "on", "after_seconds": 300, "quiet_seconds": 60, "chat_urls": chats}
        return client.post(RULE, given)

    def test_a_chat_is_stored_encrypted_and_shown_to_nobody(
        self, ann: Client, staff: Client
    ) -> None:
        assert self.save(ann, CHAT).status_code == 302
        assert IncidentRule.objects.get(pk=IncidentKind.LANE).chat_urls == [CHAT]
        with connection.cursor() as cursor:
            cursor.execute("SELECT chat_urls FROM delivery_incidentrule")
            assert "CHATSECRET" not in str(cursor.fetchall())
        for client in (ann, staff):
            page = client.get(RULE).text
            assert "127.0.0.1 •••ET99" in page
            assert "CHATSECRET" not in page
        log = "/admin/subscriptions/configurationchange/"
        for path in (log, f"{log}export/csv/", f"{log}export/jsonl/"):
            answer: Any = staff.get(path)
            content = b"".join(answer.streaming_content) if answer.streaming else answer.content
            assert b"CHATSECRET" not in content
        assert "chat_urls" in (ConfigurationChange.objects.get().after or {})

    def test_a_masked_line_keeps_its_chat_and_a_new_one_is_added(self, ann: Client) -> None:
        self.save(ann, CHAT)
        self.save(ann, f"{named_secret_address(CHAT)}\nhttps://127.0.0.1/other")
        urls = IncidentRule.objects.get(pk=IncidentKind.LANE).chat_urls
        assert urls == [CHAT, "https://127.0.0.1/other"]
        self.save(ann, "https://127.0.0.1/other")
        assert IncidentRule.objects.get(pk=IncidentKind.LANE).chat_urls == urls[1:]

    def test_of_two_chats_with_the_same_end_each_can_be_removed(self, ann: Client) -> None:
        urls = [f"https://127.0.0.1/in?key={key}&stream=ops" for key in ("first", "second")]
        self.save(ann, "\n".join(urls))
        lines = chats_in_words(IncidentRule.objects.get(pk=IncidentKind.LANE))
        assert len(set(lines)) == 2
        page = ann.get(RULE).text
        assert all(line in page for line in lines)
        self.save(ann, lines[1])
        assert IncidentRule.objects.get(pk=IncidentKind.LANE).chat_urls == urls[1:]


class TestEndpoints:
    def test_only_who_may_change_it_sees_the_whole_endpoint(
        self, ann: Client, staff: Client, row: Subscription
    ) -> None:
        delivery = factories.delivery(Status.REJECTED, subscription=row)
        factories.attempt(delivery, number=2)
        pages = [
            "/admin/subscriptions/subscription/",
            f"/admin/subscriptions/subscription/{row.pk}/",
            f"/admin/subscriptions/subscription/{row.pk}/change/",
            f"/admin/subscriptions/subscriber/{row.subscriber_id}/",
            f"/admin/delivery/delivery/{delivery.pk}/change/",
            f"/admin/delivery/message/{delivery.message_id}/change/",
            "/admin/omnibox/?q=receiver.example",
            "/admin/",
        ]
        for page in pages:
            assert not has_secret(staff.get(page, follow=True).text), page
        for page in (pages[0], pages[1], pages[4], pages[6]):
            assert has_secret(ann.get(page, follow=True).text), page

    def test_a_search_does_not_tell_what_a_mask_hides(
        self, ann: Client, staff: Client, row: Subscription
    ) -> None:
        for page in ("/admin/subscriptions/subscription/?q=", "/admin/omnibox/?q=."):
            assert "orders" in ann.get(f"{page}example/hook/{PART[:9]}").text or "q=." in page
            assert "orders" not in staff.get(f"{page}hook/{PART[:9]}").text
        assert "orders" in staff.get("/admin/subscriptions/subscription/?q=receiver.exa").text

    def test_the_configuration_log_has_a_mark_of_a_changed_secret(
        self, staff: Client, row: Subscription
    ) -> None:
        before = snapshot(row)
        row.endpoint = f"{ENDPOINT}2"
        record_change(
            actor="ann", action="changed", instance=row, before=before, after=snapshot(row)
        )
        page = staff.get("/admin/subscriptions/configurationchange/").text
        assert "receiver.example/hook/•••" in page
        assert not has_secret(page)
        change = ConfigurationChange.objects.get()
        assert change.before != change.after

    def test_the_health_of_a_url_is_shown_without_its_secrets(
        self, ann: Client, staff: Client, row: Subscription
    ) -> None:
        UrlHealth.objects.create(url=ENDPOINT, state=UrlState.FROZEN, since=timezone.now())
        listed = staff.get("/admin/delivery/urlhealth/").text
        assert "receiver.example/hook/•••" in listed
        assert not has_secret(listed)
        assert has_secret(ann.get("/admin/delivery/urlhealth/").text)
        for scope, is_whole in ((Scope.READ, False), (Scope.MANAGE, True)):
            content = caller(scope).get("url-health").content.decode()
            assert has_secret(content) is is_whole

    def test_incidents_are_announced_without_the_secrets_of_a_url(self, row: Subscription) -> None:
        now = timezone.now()
        incident = Incident.objects.create(
            key="URL x", kind=IncidentKind.URL, url=ENDPOINT, first_at=now
        )
        facts = read_facts([incident])[incident.pk]
        incident.subject = subject_of(incident, facts)
        change = IncidentChange(incident=incident, facts=facts, event="Opened", what="opened")
        assert incident.subject.startswith("https://receiver.example/hook/•••?•••")
        body = incident_body(change)
        assert not has_secret(str(body))
        assert body["url_key"] == secret_address_key(ENDPOINT)

    def test_a_manage_key_releases_the_url_of_an_incident(self, row: Subscription) -> None:
        UrlHealth.objects.create(url=ENDPOINT, state=UrlState.FROZEN, since=timezone.now())
        now = timezone.now()
        incident = Incident.objects.create(
            key="URL x",
            kind=IncidentKind.URL,
            url=ENDPOINT,
            first_at=now,
            opened_at=now,
            state="OPEN",
        )
        read, manage = caller(Scope.READ), caller(Scope.MANAGE)
        shown = read.get(f"incidents/{incident.pk}").body
        assert not has_secret(str(shown))
        assert shown["url_key"] == secret_address_key(ENDPOINT)
        listed = read.get("incidents").content.decode()
        assert not has_secret(listed)
        whole = manage.get(f"incidents/{incident.pk}").body
        assert manage.get("incidents").body["results"] == [whole]
        assert manage.post("url-health/release", {"url": whole["url"]}).status == 200

    def test_a_blocked_lane_is_shown_without_them(self, staff: Client, row: Subscription) -> None:
        delivery = factories.delivery(subscription=row)
        Lane.objects.filter(subscriber=row.subscriber_id).update(
            state="BLOCKED", since=timezone.now(), delivery_id=delivery.pk, reason="503"
        )
        page = staff.get("/admin/").text
        assert not has_secret(page)
