"""TeamForge's publish addresses: authentication, answers, and the secrecy of the id."""

import logging
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from delivery.models import Message
from delivery.vendors.teamforge import sessions
from subscriptions.models import ApiKey, ConfigurationChange, EventType, PublishId, SignIn
from subscriptions.publish_ids import OVERLAP, rotate_publish_id
from subscriptions.sign_in import MOST_OF_ACCOUNT_FROM_ORIGIN
from tests.support import factories
from tests.unit.delivery.api.client import ApiAnswer, caller, created, fields_of, refused
from tests.unit.delivery.vendors.jenkins import EVENT, Jenkins, enveloped, jenkins


@pytest.fixture
def build(db: None) -> EventType:
    return factories.event_type(EVENT)


@pytest.fixture
def plugin(build: EventType) -> Jenkins:
    return jenkins()


def test_the_id_alone_is_enough_under_v4(plugin: Jenkins, build: EventType) -> None:
    factories.subscription(event_type=build)
    envelope = enveloped(plugin.publish(b'{"buildId": "7"}', FILTER_STRING="proj1"), 201)
    message = Message.objects.get()
    assert envelope["Response"] == {"MessageID": message.pk, "Deliveries": 1}
    assert (message.publisher, bytes(message.body)) == (plugin.publisher, b'{"buildId": "7"}')
    assert message.headers["filter-string"] == "proj1"


@pytest.mark.parametrize("prefix", ["/webr/v4", "/v4/teamforge", "/a/b/c/v4"])
def test_any_path_may_stand_before_the_address(plugin: Jenkins, prefix: str) -> None:
    enveloped(plugin.publish(prefix=prefix), 201)
    enveloped(plugin.post(f"{prefix}/login", b"{}"), 400)


@pytest.mark.parametrize("scheme", ["", "Bearer ", "bearer "])
def test_without_v4_the_token_of_a_login_is_needed(plugin: Jenkins, scheme: str) -> None:
    token = plugin.token()
    enveloped(plugin.publish(prefix="", Authorization=scheme + token), 201)
    enveloped(plugin.publish(prefix="/webr", Authorization=scheme + token), 201)
    refusal = plugin.publish(prefix="", Authorization=scheme + token[:-1])
    enveloped(refusal, 401)
    assert refusal.headers["WWW-Authenticate"].startswith("Bearer")
    enveloped(plugin.publish(prefix=""), 401)
    assert Message.objects.count() == 2


def test_a_login_is_answered_as_teamforge_answers_it(plugin: Jenkins) -> None:
    answer = plugin.log_in()
    token = answer.body["Response"]["SessionToken"]
    assert answer.content == (
        b'{"HTTPStatusCode":200,"HTTPStatusText":"OK","Success":true,'
        b'"ErrorText":"","ErrorMessages":[],"Response":{"SessionToken":"%s"}}' % token.encode()
    )
    assert not SignIn.objects.exists()


def test_a_token_is_valid_for_an_hour_and_ends_with_its_key(
    plugin: Jenkins, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = plugin.token()
    monkeypatch.setattr(sessions, "SESSION_SECONDS", -1)
    enveloped(plugin.publish(prefix="", Authorization=token), 401)
    monkeypatch.undo()
    ApiKey.objects.update(revoked_at=timezone.now())
    enveloped(plugin.publish(prefix="", Authorization=token), 401)
    enveloped(plugin.log_in(), 401)


def test_wrong_passwords_count_and_a_right_key_is_let_in_all_the_same(plugin: Jenkins) -> None:
    other = jenkins("other")
    for password in ("wrong", other.key):
        enveloped(plugin.log_in(password=password), 401)
    for _ in range(MOST_OF_ACCOUNT_FROM_ORIGIN - 2):
        plugin.log_in(password="wrong")
    refusal = plugin.log_in(password="wrong")
    enveloped(refusal, 429)
    assert int(refusal.headers["Retry-After"]) > 0
    plugin.token()
    assert {row.username for row in SignIn.objects.all()} == {"publisher jenkins"}


def test_a_name_that_nobody_has_is_not_written_down(plugin: Jenkins) -> None:
    enveloped(plugin.log_in(Username="hunter2"), 401)
    assert SignIn.objects.get().username == ""


@pytest.mark.parametrize(
    "body", [b"", b"[]", b'{"Username": "a"}', b'{"Username": 1, "Password": 2}', b"x"]
)
def test_a_login_that_is_none_is_refused(plugin: Jenkins, body: bytes) -> None:
    enveloped(plugin.post("/v4/login", body), 400)


def test_the_id_of_another_publisher_is_refused(plugin: Jenkins) -> None:
    other = jenkins("other")
    envelope = enveloped(other.publish(prefix="", Authorization=plugin.token()), 403)
    assert "another publisher's than jenkins" in envelope["ErrorText"]
    assert not Message.objects.exists()


@pytest.mark.parametrize(
    ("event", "body", "status", "says"),
    [
        ("No.Such", b"{}", 400, "There is no event type No.Such"),
        ("jenkins.build", b"{}", 400, "but there is Jenkins.Build"),
        ("%00", b"{}", 400, "not the name of an event type"),
        (EVENT, b"{", 400, "The body is not JSON"),
        ("Kept", b"{}", 403, "jenkins may not publish Kept"),
        ("Checked", b"[]", 422, "schema"),
        (EVENT, b"1" * (1024 * 1024 + 1), 413, "longer than"),
    ],
)
def test_what_cannot_be_published_is_refused_in_the_envelope(
    build: EventType, event: str, body: bytes, status: int, says: str
) -> None:
    plugin = jenkins(all_event_types=False)
    checked = factories.event_type("Checked", json_schema={"type": "object"})
    plugin.publisher.event_types.set([build, checked])
    factories.event_type("Kept")
    envelope = enveloped(plugin.post(f"/v4/inbox/{event}/{plugin.id}", body), status)
    assert says in envelope["ErrorText"]
    assert envelope["ErrorMessages"] == [envelope["ErrorText"]]
    assert not Message.objects.exists()


def test_too_fast_a_publisher_gets_the_time_to_try_again(
    plugin: Jenkins, settings: Settings
) -> None:
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, publish_rate_limit="1/h")
    enveloped(plugin.publish(), 201)
    refusal = plugin.publish()
    enveloped(refusal, 429)
    assert int(refusal.headers["Retry-After"]) > 0


def test_anything_but_post_is_refused(plugin: Jenkins) -> None:
    for path in (f"/v4/inbox/{EVENT}/{plugin.id}", "/login"):
        answer = ApiAnswer(Client().get(path))
        enveloped(answer, 405)


def test_json_in_latin_1_is_stored_as_utf_8(plugin: Jenkins) -> None:
    enveloped(plugin.publish('{"createdBy": "Jürgen"}'.encode("iso-8859-1")), 201)
    enveloped(plugin.publish('{"createdBy": "Jürgen"}'.encode()), 201)
    assert {bytes(row.body) for row in Message.objects.all()} == {
        '{"createdBy": "Jürgen"}'.encode()
    }


def test_a_replaced_id_is_valid_for_a_day(plugin: Jenkins) -> None:
    _, new = rotate_publish_id(plugin.publisher, now=timezone.now())
    enveloped(plugin.publish(), 201)
    enveloped(plugin.post(f"/v4/inbox/{EVENT}/{new}"), 201)
    PublishId.objects.filter(hint=plugin.id[-4:]).update(expires_at=timezone.now())
    envelope = enveloped(plugin.publish(), 400)
    assert "No publisher has this publish id" in envelope["ErrorText"]
    enveloped(plugin.post(f"/v4/inbox/{EVENT}/{new}"), 201)


def test_a_wrong_id_costs_one_look_and_no_write(
    plugin: Jenkins, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(20) as captured:
        for number in range(20):
            enveloped(plugin.post(f"/v4/inbox/{EVENT}/{number:036}"), 400)
    assert all(query["sql"].startswith("SELECT") for query in captured.captured_queries)


def test_its_use_is_noted_to_the_minute(plugin: Jenkins) -> None:
    plugin.publish()
    first = PublishId.objects.get().last_used_at
    plugin.publish()
    assert first is not None
    assert PublishId.objects.get().last_used_at == first


def test_the_id_is_stored_nowhere_and_logged_nowhere(
    plugin: Jenkins, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    plugin.publish(
        Referer=f"https://ci/v4/inbox/{EVENT}/{plugin.id}", X_Seen=plugin.id, X_Other="1"
    )
    plugin.post(f"/v4/inbox/No.Such/{plugin.id}")
    plugin.post(f"/v4/inbox/{EVENT}/{plugin.id}/more")
    fails: Any = lambda *_: 1 / 0  # noqa: E731
    monkeypatch.setattr("delivery.vendors.teamforge.views.publish_draft", fails)
    client = Client(raise_request_exception=False)
    path = f"/v4/inbox/{EVENT}/{plugin.id}"
    assert client.generic("POST", path, b"{}", content_type="application/json").status_code == 500
    assert plugin.id not in caplog.text
    assert "inbox" in caplog.text
    (message,) = Message.objects.all()
    assert "x-other" in message.headers
    assert plugin.id not in str(message.headers)
    assert plugin.id not in str(list(PublishId.objects.values()))


class TestPublishIds:
    def test_an_id_is_shown_once_and_listed_by_its_end(self, build: EventType) -> None:
        manager = caller()
        factories.publisher("jenkins")
        made = created(manager.post("publishers/jenkins/publish-ids", {}))
        assert made["addresses"][0].endswith(f"/v4/inbox/{{eventName}}/{made['publish_id']}")
        assert made["addresses"][1].endswith(f"/inbox/{{eventName}}/{made['publish_id']}")
        (listed,) = manager.get("publishers/jenkins/publish-ids").body["results"]
        assert made["publish_id"] not in str(listed)
        assert made["publish_id"].endswith(listed["hint"])
        logged = str(list(ConfigurationChange.objects.values()))
        assert made["publish_id"] not in logged
        assert "publish id" in logged

    def test_a_new_id_lets_the_old_one_end_and_deleting_ends_it_now(self, plugin: Jenkins) -> None:
        manager = caller()
        created(manager.post("publishers/jenkins/publish-ids", {}))
        new, old = manager.get("publishers/jenkins/publish-ids").body["results"]
        assert new["expires_at"] is None
        row = PublishId.objects.get(pk=old["id"])
        assert row.expires_at is not None
        assert abs(row.expires_at - timezone.now() - OVERLAP) < timedelta(minutes=1)
        enveloped(plugin.publish(), 201)
        assert manager.delete(f"publishers/jenkins/publish-ids/{old['id']}").status == 204
        enveloped(plugin.publish(), 400)

    def test_an_id_of_teamforge_is_taken_over(self, plugin: Jenkins) -> None:
        manager = caller()
        given = {"publish_id": "0c5a3a5e-7a17-4f5b-9a3e-6c8f2d1b4a99"}
        created(manager.post("publishers/jenkins/publish-ids", given))
        enveloped(plugin.post(f"/v4/inbox/{EVENT}/{given['publish_id']}"), 201)
        refused(manager.post("publishers/jenkins/publish-ids", given), 409)

    @pytest.mark.parametrize("text", ["short", "a/b" * 10, "x" * 201, "ü" * 20, ""])
    def test_an_id_that_can_be_guessed_or_is_no_part_of_a_path_is_refused(
        self, plugin: Jenkins, text: str
    ) -> None:
        problem = refused(
            caller().post("publishers/jenkins/publish-ids", {"publish_id": text}), 400
        )
        assert "publish_id" in fields_of(problem)
