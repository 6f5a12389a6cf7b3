"""Support resubmits deliveries by REST, also edited and in bulk, and decides those in doubt."""

import base64
from typing import Any

import pytest
from django.utils import timezone

from delivery.models import Delivery, Message, Resubmission, Status
from delivery.support.bulk_jobs import advance_job
from subscriptions.models import EventType, Scope
from tests.support import factories
from tests.unit.delivery.api.client import Caller, caller, fields_of, refused
from tests.unit.delivery.support.test_bulk_jobs_resubmissions import rejected
from tests.unit.delivery.support.test_resubmit import now_of

POSTS = ("resubmit", "mark-delivered", "cancel")


@pytest.fixture
def row(db: None) -> Delivery:
    return factories.delivery(Status.REJECTED)


def body_of(message_id: str) -> bytes:
    return bytes(Message.objects.get(pk=int(message_id.removeprefix("msg_"))).body)


class TestOne:
    @pytest.mark.parametrize("given", [None, {}])
    def test_is_resubmitted_unchanged(self, manager: Caller, row: Delivery, given: Any) -> None:
        answer = manager.post(f"deliveries/{row.pk}/resubmit", given)
        assert answer.status == 200, answer
        assert (answer.body["id"], answer.body["status"]) == (row.pk, "PENDING")
        assert (answer.body["redelivery"], answer.body["attempts_before"]) == ("resubmitted", 1)
        refused(manager.post(f"deliveries/{row.pk}/resubmit", given), 409, "not-resubmittable")

    def test_that_was_received_is_refused_with_the_alternative(
        self, manager: Caller, db: None
    ) -> None:
        delivered = factories.delivery(Status.DELIVERED)
        problem = refused(
            manager.post(f"deliveries/{delivered.pk}/resubmit"), 409, "not-resubmittable"
        )
        assert "Give a body" in problem["detail"]

    def test_in_doubt_is_marked_delivered_once(self, manager: Caller, db: None) -> None:
        doubtful = factories.delivery(Status.IN_DOUBT)
        answer = manager.post(f"deliveries/{doubtful.pk}/mark-delivered")
        assert (answer.status, answer.body["status"]) == (200, "DELIVERED")
        refused(manager.post(f"deliveries/{doubtful.pk}/mark-delivered"), 409, "not-in-doubt")

    def test_in_doubt_is_cancelled(self, manager: Caller, db: None) -> None:
        doubtful = factories.delivery(Status.IN_DOUBT)
        assert manager.post(f"deliveries/{doubtful.pk}/cancel").body["status"] == "CANCELLED"
        refused(manager.post(f"deliveries/{doubtful.pk}/cancel"), 409, "not-pending")

    @pytest.mark.parametrize("verb", POSTS)
    def test_needs_a_manage_key_and_an_existing_delivery(
        self, manager: Caller, row: Delivery, verb: str
    ) -> None:
        refused(caller(Scope.READ).post(f"deliveries/{row.pk}/{verb}"), 403, "wrong-scope")
        refused(caller(Scope.PUBLISH).post(f"deliveries/{row.pk}/{verb}"), 403, "wrong-scope")
        refused(manager.post(f"deliveries/1234567/{verb}"), 404)
        assert fields_of(
            refused(manager.post(f"deliveries/{row.pk}/{verb}", {"why": "x"}), 400)
        ) == {"why"}
        assert manager.get(f"deliveries/{row.pk}/{verb}").status == 405


class TestEditedOverTheApi:
    def test_the_bytes_of_the_body_are_kept_exactly(self, manager: Caller, row: Delivery) -> None:
        text = b'{"body": { "b":1,\t"a" : 1.0, "a": 12345678901234567890 } }'
        answer = manager.ask("POST", f"deliveries/{row.pk}/resubmit", text)
        assert answer.status == 202, answer
        copy = Delivery.objects.get(pk=answer.body["delivery"])
        assert answer.body == {
            "id": copy.message.public_id,
            "deliveries": 1,
            "delivery": copy.pk,
            "edited_from": row.message.public_id,
        }
        assert body_of(answer.body["id"]) == b'{ "b":1,\t"a" : 1.0, "a": 12345678901234567890 }'
        assert copy.message.headers == row.message.headers
        read = manager.get(f"messages/{copy.message.public_id}").body
        assert (read["edited_from"], read["publisher"]) == (row.message.public_id, None)

    def test_any_bytes_with_headers_of_their_own(self, manager: Caller, row: Delivery) -> None:
        EventType.objects.update(content_type="text/plain")
        given = {
            "body_base64": base64.b64encode(b"\x00\xff").decode(),
            "headers": {
                "Content-Type": "application/octet-stream",
                "X_Why": "mended",
                "Cookie": "secret",
            },
        }
        answer = manager.post(f"deliveries/{row.pk}/resubmit", given)
        message = Message.objects.get(pk=int(answer.body["id"].removeprefix("msg_")))
        assert bytes(message.body) == b"\x00\xff"
        assert message.headers == {"content-type": "application/octet-stream", "x-why": "mended"}
        assert message.content_type == "application/octet-stream"

    @pytest.mark.parametrize(
        ("given", "status", "code"),
        [
            ({"body": 1, "body_base64": "MQ=="}, 400, "invalid"),
            ({"headers": {}}, 400, "invalid"),
            ({"body_base64": "?"}, 400, "invalid"),
            ({"body": 1, "headers": {"a": 1}}, 400, "invalid"),
            ({"body": 1, "headers": {"a": "\n"}}, 400, "invalid"),
            ({"body_base64": "ew=="}, 400, "not-json"),
            ([], 400, "invalid"),
            ({"body": "x" * 1_100_000}, 413, "too-large"),
        ],
    )
    def test_with_an_unpublishable_body_is_refused(
        self, manager: Caller, row: Delivery, given: Any, status: int, code: str
    ) -> None:
        refused(manager.post(f"deliveries/{row.pk}/resubmit", given), status, code)
        assert Message.objects.count() == 1

    def test_with_a_body_against_the_schema_is_422(self, manager: Caller, db: None) -> None:
        event_type = factories.event_type(json_schema={"required": ["id"]})
        subscription = factories.subscription(event_type=event_type)
        row = factories.delivery(Status.REJECTED, subscription=subscription)
        refused(
            manager.post(f"deliveries/{row.pk}/resubmit", {"body": {}}), 422, "schema-violation"
        )


class TestManyOverTheApi:
    def test_a_dry_run_counts_and_stores_nothing(self, manager: Caller, db: None) -> None:
        rows = rejected(3)
        fields = {"filter": {"status": "REJECTED"}, "dry_run": True}
        answer = manager.post("resubmissions", fields)
        assert answer.status == 200, answer
        assert answer.body == {
            "id": None,
            "count": 3,
            "statuses": {"REJECTED": 3},
            "oldest_at": "2026-05-04T12:00:00Z",
            "more": False,
            "state": None,
            "done": 0,
            "sample": [row.pk for row in rows],
        }
        assert not Resubmission.objects.exists()

    @pytest.mark.parametrize(
        ("bound", "count"),
        [
            ({"until": "9999-12-31T23:59:59Z"}, 3),
            ({"since": "0001-01-01T00:00:00Z"}, 3),
            ({"since": "9999-12-31T23:59:59Z"}, 0),
        ],
    )
    def test_the_ends_of_the_calendar_mean_no_bound(
        self, manager: Caller, db: None, bound: dict[str, str], count: int
    ) -> None:
        rejected(3)
        fields = {"filter": {"status": "REJECTED"} | bound}
        answer = manager.post("resubmissions", fields | {"dry_run": True})
        assert (answer.status, answer.body["count"]) == (200, count)
        if count:
            assert manager.post("resubmissions", fields).status == 201
            assert advance_job(timezone.now()) == count

    def test_a_job_is_stored_worked_through_and_read(self, manager: Caller, db: None) -> None:
        rows = rejected(3)
        chosen = {
            "status": ["REJECTED", "FAILED"],
            "message": rows[0].message.public_id,
            "since": "2026-05-04T12:00:00Z",
        }
        made = manager.post("resubmissions", {"filter": chosen, "rate": 2.5})
        assert made.status == 201, made
        read = manager.get(f"resubmissions/{made.body['id']}").body
        assert read == made.body
        assert (read["filter"], read["rate"]) == (chosen, 2.5)
        assert "key" in read["actor"]
        assert (read["state"], read["count"], read["done"], read["ended_at"]) == (
            "RUNNING",
            3,
            0,
            None,
        )
        while advance_job(timezone.now().replace(year=2099)):
            continue
        read = caller(Scope.READ).get("resubmissions").body["results"][0]
        assert (read["state"], read["done"], read["resubmitted"]) == ("DONE", 3, 3)
        assert read["ended_at"] is not None

    def test_a_job_is_cancelled_once(self, manager: Caller, db: None) -> None:
        job = manager.post("resubmissions", {"filter": {"subscriber": "crm"}}).body["id"]
        assert manager.post(f"resubmissions/{job}/cancel").body["state"] == "CANCELLED"
        refused(manager.post(f"resubmissions/{job}/cancel"), 409, "ended")

    @pytest.mark.parametrize(
        ("fields", "field"),
        [
            ({}, "filter"),
            ({"filter": {}}, "filter"),
            ({"filter": {"lane": "x"}}, "filter.lane"),
            ({"filter": {"status": "DELIVERED"}}, "filter.status"),
            ({"filter": {"status": []}}, "filter.status"),
            ({"filter": {"status": [["REJECTED"]]}}, "filter.status"),
            ({"filter": {"message": "x"}}, "filter.message"),
            ({"filter": {"since": "yesterday"}}, "filter.since"),
            ({"filter": {"subscription": 1}}, "filter.subscription"),
            ({"filter": {"status": "FAILED"}, "rate": 0}, "rate"),
            ({"filter": {"status": "FAILED"}, "rate": "5"}, "rate"),
            ({"filter": {"status": "FAILED"}, "rate": True}, "rate"),
            ({"filter": {"status": "FAILED"}, "rate": 1e9}, "rate"),
            ({"filter": {"status": "FAILED"}, "dry_run": "yes"}, "dry_run"),
            ({"filter": {"status": "FAILED"}, "speed": 1}, "speed"),
        ],
    )
    def test_a_wrong_request_is_refused_at_its_field(
        self, manager: Caller, fields: Any, field: str
    ) -> None:
        assert fields_of(refused(manager.post("resubmissions", fields), 400)) == {field}
        assert not Resubmission.objects.exists()

    def test_needs_a_manage_key(self, manager: Caller, db: None) -> None:
        reader = caller(Scope.READ)
        refused(reader.post("resubmissions", {"filter": {"status": "FAILED"}}), 403, "wrong-scope")
        refused(reader.post("resubmissions/1/cancel"), 403, "wrong-scope")
        refused(caller(Scope.PUBLISH).get("resubmissions"), 403, "wrong-scope")
        refused(manager.get("resubmissions/1"), 404)
        refused(manager.post("resubmissions/1/cancel"), 404)


class TestCancellingMany:
    def test_a_dry_run_counts_and_stores_nothing(self, manager: Caller, db: None) -> None:
        row = factories.delivery()
        factories.delivery(Status.IN_DOUBT)
        fields = {"filter": {"since": "2026-01-01T00:00:00Z"}, "dry_run": True}
        answer = manager.post("cancellations", fields)
        assert answer.status == 200, answer
        assert (answer.body["count"], answer.body["sample"]) == (1, [row.pk])
        assert answer.body["statuses"] == {"PENDING": 1}
        assert not Resubmission.objects.exists()

    def test_a_job_is_stored_worked_through_and_listed_apart_from_resubmissions(
        self, manager: Caller, db: None
    ) -> None:
        row = factories.delivery(Status.IN_DOUBT)
        made = manager.post("cancellations", {"filter": {"status": "IN_DOUBT"}})
        assert made.status == 201, made
        address = f"cancellations/{made.body['id']}"
        assert manager.get(address).body == made.body
        while advance_job(timezone.now().replace(year=2099)):
            continue
        read = caller(Scope.READ).get("cancellations").body["results"][0]
        assert (read["state"], read["done"], read["cancelled"]) == ("DONE", 1, 1)
        assert "resubmitted" not in read
        assert now_of(row).status == Status.CANCELLED
        assert manager.get("resubmissions").body["results"] == []
        refused(manager.get(f"resubmissions/{made.body['id']}"), 404)
        refused(manager.post(f"{address}/cancel"), 409, "ended")

    @pytest.mark.parametrize("status", ["REJECTED", "DELIVERED", [], "x"])
    def test_settled_deliveries_are_not_cancelled(
        self, manager: Caller, db: None, status: Any
    ) -> None:
        problem = refused(manager.post("cancellations", {"filter": {"status": status}}), 400)
        assert fields_of(problem) == {"filter.status"}

    def test_needs_a_manage_key(self, manager: Caller, db: None) -> None:
        reader = caller(Scope.READ)
        refused(reader.post("cancellations", {"filter": {"status": "PENDING"}}), 403, "wrong-scope")
        refused(manager.post("cancellations", {"filter": {}}), 400)
        assert not Resubmission.objects.exists()
