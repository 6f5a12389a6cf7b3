"""What concerns one day reads the partitions of that day, however many other days there are.

A message or a time near it chooses the partitions before or while a statement runs. Some look-ups
have no id to choose by, such as the id of a time: they find at most one row of each partition by an
index. Every partition here has a thousand, so a statement that lost its condition reads more.
"""

import re
from collections.abc import Iterator
from datetime import timedelta
from itertools import chain

import pyarrow as pa
import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from config.settings import WALKS_INDEXES
from delivery.database.statements import statement
from delivery.history.postgres.division import divided
from delivery.history.postgres.message_columns import columns_statement
from delivery.history.postgres.sent_statements import sent_statement
from delivery.history.postgres.source import Piece, snapshot_statements
from delivery.history.postgres.successes import SUCCESS, success_checksum_sql
from delivery.history.postgres.window import ExportWindow, Snapshot
from delivery.history.schemas import ATTEMPTS, BY_NAME, DELIVERIES
from delivery.maintenance import retention
from delivery.models import (
    Archived,
    Delivery,
    IdempotencyKey,
    Message,
    RetentionRun,
    RetentionState,
)
from delivery.models.message import public_id
from tests.support import factories
from tests.support.partitions import Plans, explaining
from tests.support.six_days import BEGINNING, CHOSEN, ROWS, Days, six_days
from tests.unit.delivery.maintenance.ranged import check_constraints

CONSOLE = "/admin/delivery"

# The look-ups that have no id to choose by.
_LOOK_UPS = re.compile(
    # The id of a time, and the time of an id that may have no message any more.
    r'SELECT "delivery_message"\."(id" AS "pk|published_at" AS "published_at)" FROM'
    # Its edited copies are in later partitions, and so are the reports of its failures.
    r'|.*"delivery_message"\."edited_from_id" = '
    r"|-- The messages about failures of deliveries"
)


def assert_pruned(days: Days, plans: Plans) -> None:
    """Check that only look-ups went beyond the day, and read at most a row of a partition."""
    for text, scans in plans.statements:
        is_look_up = _LOOK_UPS.match(" ".join(text.split()))
        for scan in days.beyond(scans):
            assert is_look_up, (scan, text)
            assert scan.rows <= 1, (scan, text)


@pytest.fixture
def days(db: None) -> Iterator[Days]:
    with six_days() as made:
        yield made


@pytest.fixture
def console(days: Days) -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("ann"))
    return client


def of_the_day() -> dict[str, str]:
    """Return the parameters of a search that begins before the day's messages and ends after."""
    day = BEGINNING + timedelta(days=CHOSEN, hours=-3)
    return {"since": f"{day:%Y-%m-%dT%H:%M:%S}", "until": f"{day:%Y-%m-%d}T23:00:00"}


class TestSearches:
    """A search reads a few thousand ids more on either side, which may be of a neighbouring day."""

    @pytest.mark.parametrize("by", ["", "body", "header", "status", "subscriber"])
    def test_a_search_of_messages_reads_its_day(self, days: Days, console: Client, by: str) -> None:
        values = {
            "": "",
            "body": "needle",
            "header": "needle",
            "status": "REJECTED",
            "subscriber": days.subscriber,
        }
        with explaining() as plans:
            page = console.get(f"{CONSOLE}/message/", of_the_day() | {by or "q": values[by]})
        found = [row.pk for row in page.context["cl"].result_list]
        assert len(found) == 25
        assert days.chosen.first_id < min(found) < max(found) < days.chosen.until_id
        # The statements also look up the ids of the times.
        beyond = days.beyond(plans.scans(), slack=1)
        assert {scan.table for scan in beyond} == {"delivery_message"}
        assert max(scan.rows for scan in beyond) == 1

    def test_a_list_of_deliveries_reads_its_day(self, days: Days, console: Client) -> None:
        with explaining() as plans:
            page = console.get(f"{CONSOLE}/delivery/", of_the_day() | {"status": "REJECTED"})
        assert len(page.context["cl"].result_list) == 25
        # The statement also looks up the ids of the times, and joins messages by their time.
        beyond = days.beyond(plans.scans(), slack=1)
        assert {scan.table for scan in beyond} == {"delivery_message"}
        assert max(scan.rows for scan in beyond) == 1

    @pytest.mark.parametrize("query", ["messages?", "messages?status=REJECTED&", "deliveries?"])
    def test_a_search_by_rest_reads_its_day(self, days: Days, query: str) -> None:
        _, secret = factories.api_key()
        moments = of_the_day()
        path = f"/api/v1/{query}since={moments['since']}Z&until={moments['until']}Z"
        with explaining() as plans:
            answer = Client(headers={"Authorization": f"Bearer {secret}"}).get(path)
        assert len(answer.json()["results"]) == 50
        # Each statement also looks up the ids of the times.
        beyond = days.beyond(plans.scans(), slack=1)
        assert {scan.table for scan in beyond} == {"delivery_message"}
        assert max(scan.rows for scan in beyond) == 1


class TestMessages:
    @pytest.mark.parametrize("part", ["change/?explain=all", "trace/json/", "trace/text/"])
    def test_a_page_of_a_message_reads_its_day(
        self, days: Days, console: Client, part: str
    ) -> None:
        with explaining() as plans:
            page = console.get(f"{CONSOLE}/message/{days.rejected_id}/{part}")
            content = page.getvalue().decode()
        assert "REJECTED" in content
        assert_pruned(days, plans)

    def test_the_trace_below_the_form_of_publishing_reads_its_day(
        self, days: Days, console: Client
    ) -> None:
        message = Message.objects.get(pk=days.rejected_id)
        page = reverse("admin:subscriptions_eventtype_publish", args=[message.event_type_id])
        with explaining() as plans:
            answer = console.get(f"{page}?message={message.public_id}")
        assert "REJECTED" in answer.text
        assert_pruned(days, plans)

    @pytest.mark.parametrize("part", ["", "/explain"])
    def test_an_answer_about_a_message_reads_its_day(self, days: Days, part: str) -> None:
        _, secret = factories.api_key()
        path = f"/api/v1/messages/{public_id(days.rejected_id)}{part}"
        with explaining() as plans:
            answer = Client(headers={"Authorization": f"Bearer {secret}"}).get(path)
        assert answer.status_code == 200
        assert_pruned(days, plans)


class TestExports:
    """An export finds rows by their times and ids, and all that belongs to them by id."""

    @pytest.fixture
    def window(self, days: Days) -> ExportWindow:
        with connection.cursor() as cursor:
            for option in WALKS_INDEXES:
                cursor.execute(f"SET LOCAL {option.split()[1].split('=')[0]} TO DEFAULT")
            for setting in snapshot_statements("")[:-2]:
                cursor.execute(setting.replace("SET ", "SET LOCAL "))
        since = BEGINNING + timedelta(days=CHOSEN, hours=-3)
        return ExportWindow(since, since + timedelta(days=1))

    def test_each_statement_of_a_worker_reads_its_day(
        self, days: Days, window: ExportWindow
    ) -> None:
        seen = Snapshot(name="", visible="", connection=connection.connection)
        pieces, counted = divided(seen, window)
        assert counted == {"messages": ROWS, "deliveries": ROWS, "journal": 0}
        for text in chain.from_iterable(map(_statements, pieces)):
            plans = Plans()
            plans.explain(text)
            assert max(scan.rows for scan in plans.scans()) == ROWS
            assert not days.beyond(plans.scans())

    def test_an_old_delivery_settled_that_day_adds_one_row_of_its_own(
        self, days: Days, window: ExportWindow
    ) -> None:
        old = Delivery.objects.filter(message_id=days.ranges[0].first_id + 41)
        assert old.update(settled_at=window.since + timedelta(hours=1)) == 1
        seen = Snapshot(name="", visible="", connection=connection.connection)
        pieces, _ = divided(seen, window)
        for text in chain.from_iterable(map(_statements, pieces)):
            plans = Plans()
            plans.explain(text)
            of_deliveries = [
                scan.rows for scan in days.beyond(plans.scans()) if scan.table == "delivery_settled"
            ]
            assert sum(of_deliveries) == ("delivery_settled" in text)
            assert {scan.rows for scan in days.beyond(plans.scans())} <= {0, 1}

    def test_the_columns_of_messages_are_read_from_their_day(self, days: Days) -> None:
        ids = pa.array([days.chosen.first_id, days.chosen.until_id - 1])
        plans = Plans()
        plans.explain(columns_statement(ids))
        assert not days.beyond(plans.scans())

    @pytest.mark.parametrize(
        ("relation", "id", "at"),
        [
            ("delivery_settlement", "delivery_id", "settled_at"),
            ("delivery_message", "id", "published_at"),
        ],
    )
    def test_counting_reads_its_day(
        self, days: Days, window: ExportWindow, relation: str, id: str, at: str
    ) -> None:
        plans = Plans()
        text = statement("archive_bounds").format(relation=relation, id=id, at=at)
        plans.explain(
            text,
            {
                "since": window.since,
                "until": window.until,
                "rows": 50_000,
                "most": 4,
                "share": 0.02,
            },
        )
        assert {scan.rows for scan in days.beyond(plans.scans())} == {0}


def _statements(piece: Piece) -> list[str]:
    """Return the statements by which a worker reads a piece."""
    if piece.table != DELIVERIES.name:
        return [sent_statement(BY_NAME[piece.table], piece.select)]
    deliveries = sent_statement(DELIVERIES, piece.select, SUCCESS, success_checksum_sql())
    attempts = sent_statement(ATTEMPTS, piece.of_attempts.select)
    return [deliveries, attempts]


class TestRemovals:
    @pytest.fixture(autouse=True)
    def _archived(self, days: Days) -> None:
        Archived.objects.create(pk=1, until=timezone.now() - timedelta(hours=12))
        check_constraints()

    def advanced(self, days: Days) -> tuple[RetentionRun, Plans]:
        """Let a pass that has come to the chosen day go on, long after that day."""
        run = RetentionRun.objects.create(
            first_id=1,
            last_id=days.chosen.until_id + 5,
            position=days.chosen.first_id - 1,
            started_at=timezone.now(),
            state=RetentionState.RUNNING,
        )
        with explaining() as plans:
            retention.advance_pass(timezone.now() + timedelta(days=1_000))
        run.refresh_from_db()
        return run, plans

    def test_the_removal_of_a_range_reads_that_range(self, days: Days) -> None:
        run, plans = self.advanced(days)
        assert (run.messages, run.position) == (ROWS, days.chosen.until_id - 1)
        # Edited copies in other partitions keep a range.
        beyond = days.beyond(plans.scans())
        assert {scan.table for scan in beyond} == {"delivery_message"}
        assert {scan.rows for scan in beyond} == {0}

    def test_the_removal_of_rows_reads_their_range(self, days: Days) -> None:
        # The publisher may repeat the request: a range with such a message is not dropped.
        IdempotencyKey.objects.create(
            publisher=factories.publisher(), key="a", digest=b"", message_id=days.rejected_id
        )
        run, plans = self.advanced(days)
        assert 0 < run.messages < ROWS
        # Statements that lock rows look into all partitions, by their ids.
        assert {scan.rows for scan in days.beyond(plans.scans())} == {0}
