"""Mail and chat: one when an incident opens, one when it closes, whatever the servers do."""

import json
import threading
from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from delivery.incidents import actions, claims
from delivery.incidents.alerts import AlertThreads, send_next
from delivery.incidents.claims import claim_alerts, due_channels
from delivery.models import AlertChannel, Incident, IncidentAlert
from tests.support import factories
from tests.support.mail_server import MailServer
from tests.support.receivers import Receiver
from tests.unit.delivery.incidents.watched import block, pass_time, rule, turn, unblock

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("any_disk")]

SUE = "sue@example.com"
MAIL, CHAT = AlertChannel.MAIL, AlertChannel.CHAT


def open_and_close() -> None:
    lane = block(factories.delivery())
    turn()
    unblock(lane)
    turn()
    pass_time(Incident.objects.latest("id"), 61)
    turn()


def due_again() -> None:
    now = timezone.now()
    IncidentAlert.objects.filter(sent_at=None).update(next_at=now - timedelta(seconds=1))


def test_there_is_one_mail_when_it_opens_and_one_when_it_closes(mail_server: MailServer) -> None:
    rule("LANE", mail_to=[SUE])
    open_and_close()
    assert send_next(MAIL)
    assert not send_next(MAIL)
    opened, closed = mail_server.wait_for_mails(2)
    subject = Incident.objects.get().subject
    assert opened["subject"] == f"[Inturn] {subject}"
    assert closed["subject"] == f"[Inturn] over: {subject}"
    assert "Cause: 500: oops" in opened.get_content()
    assert "/admin/delivery/incident/" in opened.get_content()
    assert [to for to, _ in mail_server.mails] == [[SUE], [SUE]]
    assert opened["message-id"] != closed["message-id"]


def sending() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("alerts ")]


@pytest.mark.django_db(transaction=True)
def test_a_channel_with_due_alerts_gets_a_thread_until_they_are_sent(
    mail_server: MailServer,
) -> None:
    rule("LANE", mail_to=[SUE])
    threads = AlertThreads()
    threads.begin(timezone.now())
    assert sending() == []
    open_and_close()
    # The duties' loop pauses before it looks again, also if the thread fails at once.
    assert threads.begin(timezone.now()) == 0
    threads.wait()
    mail_server.wait_for_mails(2)
    threads.begin(timezone.now())
    assert sending() == []


@pytest.mark.usefixtures("mail_server")
def test_a_channel_is_due_only_if_the_oldest_alert_of_a_recipient_is() -> None:
    rule("LANE", mail_to=[SUE])
    open_and_close()
    now = timezone.now()
    assert due_channels(now=now) == [MAIL]
    opened = IncidentAlert.objects.earliest("id")
    IncidentAlert.objects.filter(pk=opened.pk).update(next_at=now + timedelta(seconds=9))
    assert due_channels(now=now) == []
    assert claim_alerts(MAIL, now=now) is None


def test_rules_without_recipients_use_those_of_the_settings(
    mail_server: MailServer, settings: Settings
) -> None:
    mail = replace(settings.ENVIRONMENT.mail, to=["ops@example.com"])
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, mail=mail)
    block(factories.delivery())
    turn()
    assert IncidentAlert.objects.get().recipient == "ops@example.com"


def test_a_mail_is_sent_again_by_the_same_id_after_its_server_was_down(
    mail_server: MailServer,
) -> None:
    rule("LANE", mail_to=[SUE])
    block(factories.delivery())
    turn()
    mail_server.mode = "refuses"
    assert send_next(MAIL)
    alert = IncidentAlert.objects.get()
    assert (alert.sent_at, alert.tries) == (None, 1)
    assert "not now" in alert.error
    # Not at once again.
    assert not send_next(MAIL)
    mail_server.mode = "takes"
    due_again()
    assert send_next(MAIL)
    (mail,) = mail_server.wait_for_mails(1)
    assert f"-alert-{alert.pk}@" in mail["message-id"]


def test_mails_arrive_in_order_after_their_server_was_down(mail_server: MailServer) -> None:
    rule("LANE", mail_to=[SUE])
    lane = block(factories.delivery())
    turn()
    mail_server.mode = "refuses"
    for _ in range(3):
        due_again()
        assert send_next(MAIL)
    mail_server.mode = "takes"
    unblock(lane)
    turn()
    pass_time(Incident.objects.get(), 61)
    turn()
    # The second mail is due, and waits for the first one, whose pause has not ended.
    assert IncidentAlert.objects.latest("id").next_at <= timezone.now()
    assert not send_next(MAIL)
    due_again()
    assert send_next(MAIL)
    opened, closed = mail_server.wait_for_mails(2)
    assert closed["subject"] == opened["subject"].replace("[Inturn]", "[Inturn] over:")
    assert not send_next(MAIL)


def test_a_claimed_alert_is_left_to_its_sender_until_that_has_died(
    mail_server: MailServer,
) -> None:
    rule("LANE", mail_to=[SUE])
    block(factories.delivery())
    turn()
    IncidentAlert.objects.update(error="421 not now", tries=1)
    assert claim_alerts(MAIL, now=timezone.now()) is not None
    # The incident's page shows the last error meanwhile.
    assert IncidentAlert.objects.get().error == "421 not now"
    block(factories.delivery(subscription=factories.subscription()))
    turn()
    now = timezone.now()
    assert claim_alerts(MAIL, now=now) is None
    claimed = claim_alerts(MAIL, now=now + timedelta(minutes=3))
    assert claimed is not None
    assert [*claimed.alerts] == [*IncidentAlert.objects.order_by("id")]
    assert len(claimed.alerts) == 2


def test_more_alerts_than_are_sent_at_once_wait_for_the_same_pause(
    mail_server: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "MOST_AT_ONCE", 1)
    rule("LANE", mail_to=[SUE, "joe@example.com"])
    open_and_close()
    mail_server.mode = "refuses"
    # One attempt for each recipient.
    assert [send_next(MAIL) for _ in range(3)] == [True, True, False]
    mail_server.mode = "takes"
    due_again()
    assert [send_next(MAIL) for _ in range(5)] == [True] * 4 + [False]
    mail_server.wait_for_mails(4)
    opened, closed = [mail["subject"] for to, mail in mail_server.mails if to == [SUE]]
    assert closed == opened.replace("[Inturn]", "[Inturn] over:")


def test_the_pause_stops_growing(mail_server: MailServer) -> None:
    rule("LANE", mail_to=[SUE])
    block(factories.delivery())
    turn()
    IncidentAlert.objects.update(tries=2000)
    mail_server.mode = "refuses"
    assert send_next(MAIL)
    alert = IncidentAlert.objects.get()
    assert alert.tries == 2001
    assert alert.next_at <= timezone.now() + timedelta(minutes=10)


def test_many_incidents_at_once_are_one_mail(mail_server: MailServer) -> None:
    rule("LANE", mail_to=[SUE])
    for _ in range(6):
        block(factories.delivery(subscription=factories.subscription()))
    turn()
    send_next(MAIL)
    (mail,) = mail_server.wait_for_mails(1)
    assert "6 incidents" in mail["subject"]


def test_a_muted_cause_sends_no_mail_but_a_message(mail_server: MailServer) -> None:
    rule("LANE", mail_to=[SUE])
    lane = block(factories.delivery())
    turn()
    incident = Incident.objects.get()
    now = timezone.now()
    actions.mute_incident(incident.pk, until=now + timedelta(hours=8), actor="sue", now=now)
    unblock(lane)
    turn()
    pass_time(incident, 61)
    turn()
    # The cause returns, as another incident.
    block(factories.delivery(subscription=factories.subscription(subscriber=lane.subscriber)))
    turn()
    assert Incident.objects.filter(key=incident.key).count() == 2
    assert IncidentAlert.objects.count() == 1


def test_a_chat_gets_the_text(receiver: Receiver) -> None:
    chat = receiver.endpoint("chat")
    rule("LANE", chat_urls=[chat.url])
    block(factories.delivery())
    turn()
    assert send_next(CHAT)
    (request,) = chat.wait_for_count(1)
    assert Incident.objects.get().subject in json.loads(request.body)["text"]
    assert IncidentAlert.objects.get().sent_at is not None


def test_a_chat_at_a_forbidden_address_is_not_called(
    receiver: Receiver, settings: Settings
) -> None:
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, allowed_networks=())
    chat = receiver.endpoint("chat")
    rule("LANE", chat_urls=[chat.url])
    block(factories.delivery())
    turn()
    send_next(CHAT)
    assert "loopback" in IncidentAlert.objects.get().error
    assert chat.received == []
