"""Rewriting endpoints in bulk: previewed, applied only as previewed, each logged."""

from typing import Any

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries, DjangoCaptureOnCommitCallbacks

from delivery.lifecycle import notifier
from subscriptions.models import ConfigurationChange, Mode, Subscription
from subscriptions.rewriting import Replacement, RewriteError
from subscriptions.values.shown_addresses import recorded_address
from tests.support import factories

ADDRESS = "/admin/subscriptions/subscription/rewrite/"
MOVE = {"old": "https://127.0.0.1/", "new": "https://127.0.0.2:8443/in/"}


class TestReplacing:
    @pytest.mark.parametrize(
        ("old", "new", "text", "becomes"),
        [
            (
                "https://a.example/",
                "https://b.example/",
                "https://a.example/x?y=1",
                "https://b.example/x?y=1",
            ),
            ("https://a.example", "https://b.example", "https://a.example", "https://b.example"),
            (
                "https://a.example",
                "https://b.example",
                "https://a.example?y",
                "https://b.example?y",
            ),
            ("https://a.example", "https://b.example", "https://a.example.org/x", None),
            ("https://a.example", "https://b.example", "https://a.example:8443/x", None),
            (
                "https://a.example/v1",
                "https://a.example/v2",
                "https://a.example/v1/x",
                "https://a.example/v2/x",
            ),
            ("https://a.example/v1", "https://a.example/v2", "https://a.example/v10", None),
            (
                "https://a.example/",
                "https://b.example/",
                "PATCH:https://a.example/x",
                "PATCH:https://b.example/x",
            ),
            (
                "https://a.example/",
                "https://b.example/",
                "https://c.example/https://a.example/",
                None,
            ),
            ("https://a.example/", "https://b.example/", "", None),
        ],
    )
    def test_only_a_beginning_that_ends_where_a_part_does(
        self, old: str, new: str, text: str, becomes: str | None
    ) -> None:
        assert Replacement(old=old, new=new).of(text) == becomes

    @pytest.mark.parametrize(
        ("old", "new", "said"),
        [
            ("a.example", "https://b.example", "begins with https:// or http://"),
            ("https://a.example", "ftp://b.example", "begins with https:// or http://"),
            ("https://a.example", "https://a.example", "Both are the same"),
            ("https://a.example/", "https://b.example", "End both with a slash"),
            ("PATCH:https://a.example", "https://b.example", "without a method"),
        ],
    )
    def test_a_useless_prefix_is_refused(self, old: str, new: str, said: str) -> None:
        with pytest.raises(RewriteError, match=said):
            Replacement(old=old, new=new)


class TestRewritingPage:
    @pytest.fixture
    def moving(self, db: None) -> list[Subscription]:
        crm = factories.subscriber("crm")
        return [
            factories.subscription(
                "orders", subscriber=crm, endpoint="https://127.0.0.1/orders?a=1"
            ),
            factories.subscription(
                "patched",
                subscriber=factories.subscriber("erp"),
                endpoint="PATCH:https://127.0.0.1/p",
                probe_url="https://127.0.0.1/up",
            ),
        ]

    @pytest.fixture
    def staying(self, db: None) -> list[Subscription]:
        return [
            factories.subscription(endpoint="https://127.0.0.3/x"),
            factories.subscription(mode=Mode.PULL),
        ]

    def preview(self, client: Client, **given: str) -> Any:
        return client.get(ADDRESS, MOVE | given)

    def post(self, client: Client, page: Any, **given: str) -> Any:
        return client.post(ADDRESS, MOVE | {"seen": page.context["plan"].seen} | given, follow=True)

    def endpoints(self) -> set[str]:
        return set(Subscription.objects.values_list("endpoint", flat=True))

    def test_a_preview_changes_nothing(
        self, ann: Client, moving: list[Subscription], staying: list[Subscription]
    ) -> None:
        before = self.endpoints()
        page = self.preview(ann)
        assert "2 subscriptions would change" in page.text
        for text in (
            "https://127.0.0.2:8443/in/orders?a=1",
            "PATCH:https://127.0.0.2:8443/in/p",
            "in/up",
        ):
            assert text in page.text
        assert "127.0.0.3" not in page.text
        assert self.endpoints() == before

    def test_all_endpoints_are_rewritten_logged_and_the_senders_notified(
        self,
        ann: Client,
        moving: list[Subscription],
        staying: list[Subscription],
        django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        reported: list[str] = []
        monkeypatch.setattr(notifier, "notify_of_change", lambda: reported.append("changed"))
        page = self.preview(ann)
        with django_capture_on_commit_callbacks(execute=True):
            answer = self.post(ann, page)
        assert "The URLs of 2 subscriptions were changed." in answer.text
        assert self.endpoints() == {
            "https://127.0.0.2:8443/in/orders?a=1",
            "PATCH:https://127.0.0.2:8443/in/p",
            "https://127.0.0.3/x",
            "",
        }
        assert Subscription.objects.get(name="patched").probe_url == "https://127.0.0.2:8443/in/up"
        logged = {row.object_name: row for row in ConfigurationChange.objects.all()}
        assert set(logged) == {"crm/orders", "erp/patched"}
        assert logged["crm/orders"].actor == "ann"
        assert logged["crm/orders"].before == {
            "endpoint": recorded_address("https://127.0.0.1/orders?a=1")
        }
        assert logged["crm/orders"].after == {
            "endpoint": recorded_address("https://127.0.0.2:8443/in/orders?a=1")
        }
        assert "changed" in reported
        for row in moving:
            assert Subscription.objects.get(pk=row.pk).updated_at > row.updated_at

    def test_secrets_stay(self, ann: Client, moving: list[Subscription]) -> None:
        row = moving[0]
        row.headers, row.auth = {"X-Key": "topsecret"}, {"type": "bearer", "token": "hunter2"}
        row.save()
        self.post(ann, self.preview(ann))
        kept = Subscription.objects.get(pk=row.pk)
        assert (kept.headers, kept.auth) == (row.headers, row.auth)

    @pytest.mark.parametrize("change", ["another", "edited", "gone", "inactive"])
    def test_a_change_since_the_preview_stops_the_rewrite(
        self, ann: Client, moving: list[Subscription], change: str
    ) -> None:
        page = self.preview(ann, status="ACTIVE")
        rows = Subscription.objects.filter(pk=moving[0].pk)
        if change == "another":
            factories.subscription(endpoint="https://127.0.0.1/new")
        elif change == "edited":
            rows.update(endpoint="https://127.0.0.1/elsewhere")
        elif change == "gone":
            rows.delete()
        else:
            rows.update(status="INACTIVE")
        before = self.endpoints()
        answer = self.post(ann, page, status="ACTIVE")
        assert "Nothing was changed, because a subscription has just changed" in answer.text
        assert self.endpoints() == before
        assert not ConfigurationChange.objects.exists()
        # The preview in that answer can be applied.
        assert "were changed" in self.post(ann, answer, status="ACTIVE").text or change == "another"

    def test_refused_urls_stay_with_their_reason(
        self, ann: Client, moving: list[Subscription]
    ) -> None:
        long = "https://127.0.0.1/" + "x" * 1975
        factories.subscription("long", subscriber=factories.subscriber("zoo"), endpoint=long)
        page = self.preview(ann)
        assert "2 subscriptions would change, 1 would not" in page.text
        assert "An endpoint has at most 2000 characters" in page.text
        self.post(ann, page)
        assert long in self.endpoints()
        assert ConfigurationChange.objects.count() == 2

    def test_an_address_that_is_not_allowed_is_refused_for_all(
        self, ann: Client, moving: list[Subscription]
    ) -> None:
        page = self.preview(ann, new="https://10.0.0.1/")
        assert "0 subscriptions would change, 2 would not" in page.text
        assert "The address 10.0.0.1 is refused" in page.text
        assert 'name="seen"' not in page.text

    def test_filters_of_the_list_narrow_it_down(
        self, ann: Client, moving: list[Subscription]
    ) -> None:
        listed = ann.get("/admin/subscriptions/subscription/?subscriber=crm&q=x").text
        assert f'href="{ADDRESS}?subscriber=crm"' in listed
        assert 'value="crm"' in ann.get(ADDRESS, {"subscriber": "crm"}).text
        page = self.preview(ann, subscriber="crm")
        assert "1 subscription would change" in page.text
        self.post(ann, page, subscriber="crm")
        assert ConfigurationChange.objects.get().object_name == "crm/orders"

    def test_no_match_is_reported(self, ann: Client, staying: list[Subscription]) -> None:
        assert "No URL begins with this" in self.preview(ann).text

    def test_errors_are_shown(self, ann: Client, db: None) -> None:
        assert "End both with a slash" in self.preview(ann, new="https://127.0.0.2").text
        assert "This field is required" in self.preview(ann, old="").text

    def test_the_number_of_queries_does_not_depend_on_the_rows(
        self,
        ann: Client,
        moving: list[Subscription],
        django_assert_num_queries: DjangoAssertNumQueries,
    ) -> None:
        with django_assert_num_queries(3):
            self.preview(ann)
        for _ in range(5):
            factories.subscription(endpoint="https://127.0.0.1/many")
        with django_assert_num_queries(3):
            self.preview(ann)

    def test_rewriting_needs_the_right_to_change_subscriptions(
        self, reader: Client, moving: list[Subscription]
    ) -> None:
        assert self.preview(reader).status_code == 403
        assert reader.post(ADDRESS, MOVE | {"seen": ""}).status_code == 403
        assert "Change endpoint URLs" not in reader.get("/admin/subscriptions/subscription/").text
