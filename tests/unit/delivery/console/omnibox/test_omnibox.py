"""The search field: queries and their mistakes, ids, names, pages, actions; and rights."""

from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client

from delivery.console.omnibox.query import QueryError, is_query, parse_query
from delivery.states import Status
from subscriptions.models import Subscription
from tests.support import factories


class TestParsing:
    @pytest.mark.parametrize(
        ("text", "parameters"),
        [
            ("status:failed", {"tab": "failed"}),
            ("status:FAILED", {"status": "FAILED"}),
            ("STATUS:rejected", {"status": "REJECTED"}),
            ("status:in_doubt", {"tab": "in-doubt"}),
            ("status:3xxnotsupported", {"status": "3xxNOTSUPPORTED"}),
            ('body:"a \\"b\\" c"', {"body": 'a "b" c'}),
            (
                "event:Demo.Order since:1h",
                {"event_type": "Demo.Order", "since": "1h"},
            ),
            ("since:2026-11-26T10:00+02:00", {"since": "2026-11-26T08:00:00"}),
            ("until:7d", {"until": "7d"}),
            ("subscription:shop-crm/cases", {"subscription": "shop-crm/cases"}),
        ],
    )
    def test_conditions_become_the_parameters_of_a_list(
        self, text: str, parameters: dict[str, str]
    ) -> None:
        assert parse_query(text).parameters == parameters

    @pytest.mark.parametrize(
        ("text", "reported"),
        [
            ("stauts:failed", "There is no filter stauts:. Did you mean status:?"),
            ("status:faild", "There is no status 'faild'. Did you mean failed?"),
            ("since:yesterday", "'yesterday' is no time. Write 30m, 1h or 7d"),
            ("since:1h since:2h", "since: is there twice."),
            ("subscriber: x", "Write a value after subscriber:"),
            ("until:0001-01-01", "'0001-01-01' is out of range."),
        ],
    )
    def test_a_mistake_is_reported_with_the_cure(self, text: str, reported: str) -> None:
        with pytest.raises(QueryError) as refused:
            parse_query(text)
        assert refused.value.detail.startswith(reported)

    @pytest.mark.parametrize("text", ["https://a.example/x:1", "queue:2", "msg_7", "shop-crm"])
    def test_addresses_lanes_and_names_are_no_queries(self, text: str) -> None:
        assert not is_query(text)


def found(client: Client, text: str) -> dict[str, list[tuple[str, str]]]:
    """Return title and address of each result, by its group."""
    answer = client.get("/admin/omnibox/", {"q": text}).json()
    assert answer["mistake"] == ""
    return {
        group["title"]: [(hit["title"], hit["address"]) for hit in group["hits"]]
        for group in answer["groups"]
    }


def mistake(client: Client, text: str) -> str:
    answer = client.get("/admin/omnibox/", {"q": text}).json()
    assert answer["groups"] == []
    return str(answer["mistake"])


@pytest.fixture
def cases(db: None) -> Subscription:
    return factories.subscription(
        "cases",
        subscriber=factories.subscriber("shop-crm"),
        event_type=factories.event_type("Shop.Case"),
        endpoint="https://crm.example/hook",
    )


class TestResults:
    def test_ids_lead_to_their_pages(self, ann: Client, cases: Subscription) -> None:
        row = factories.delivery(Status.REJECTED, subscription=cases)
        public_id = row.message.public_id
        message = (public_id, f"/admin/delivery/message/{row.message_id}/change/")
        delivery = (f"delivery {row.pk}", f"/admin/delivery/delivery/{row.pk}/change/")
        assert found(ann, public_id)["Ids"] == [message]
        assert found(ann, str(row.message_id))["Ids"] == [message]
        assert found(ann, f"delivery {row.pk}")["Ids"] == [delivery]
        assert "Ids" not in found(ann, "msg_999999999")

    def test_names_and_endpoints_are_found_by_a_part(
        self, ann: Client, cases: Subscription
    ) -> None:
        status = f"/admin/subscriptions/subscription/{cases.pk}/"
        assert found(ann, "CRM/ca")["Subscriptions"] == [("shop-crm/cases", status)]
        shown = found(ann, "shop")
        assert ("shop-crm", f"/admin/subscriptions/subscriber/{cases.subscriber_id}/") in shown[
            "Subscribers"
        ]
        assert [title for title, _ in shown["Event types"]] == ["Shop.Case"]
        assert found(ann, "crm.example")["Endpoints"] == [("https://crm.example/hook", status)]

    @pytest.mark.parametrize(
        ("text", "title"), [("roles", "Roles"), ("groups", "Roles"), ("url h", "URL health")]
    )
    def test_pages_have_the_names_of_the_menu_and_others(
        self, ann: Client, text: str, title: str
    ) -> None:
        assert title in [name for name, _ in found(ann, text)["Pages"]]

    def test_the_guide_is_found(self, ann: Client) -> None:
        assert all("/guide/" in address for _, address in found(ann, "duplicates")["Guide"])

    def test_actions_lead_to_the_page_that_asks(self, ann: Client, cases: Subscription) -> None:
        status = f"/admin/subscriptions/subscription/{cases.pk}/"
        assert ("Hold shop-crm/cases …", status) in found(ann, "hold cases")["Actions"]
        publish = f"/admin/subscriptions/eventtype/{cases.event_type_id}/publish/"
        assert found(ann, "publish shop")["Actions"] == [
            ("Publish a message of Shop.Case", publish)
        ]
        replay = f"/admin/delivery/replay/add/?subscription={cases.pk}"
        assert found(ann, "replay to cases")["Actions"] == [
            ("Replay messages to shop-crm/cases …", replay)
        ]
        resubmit = dict(found(ann, "resubmit failed of shop-crm")["Actions"])
        bulk = "/admin/delivery/resubmission/add/"
        assert resubmit["Resubmit failed deliveries of shop-crm …"] == f"{bulk}?subscriber=shop-crm"
        assert (
            ann.get(resubmit["Resubmit failed deliveries of shop-crm/cases …"]).status_code == 200
        )
        assert ("New subscription", "/admin/subscriptions/subscription/add/") in found(
            ann, "new sub"
        )["Actions"]

    def test_every_result_leads_to_a_page(self, ann: Client, cases: Subscription) -> None:
        factories.delivery(Status.REJECTED, subscription=cases)
        for text in (
            "shop",
            "resubmit",
            "cancel shop",
            "hold",
            "new",
            "pub",
            "re",
            "report",
            "po",
            "replay shop",
        ):
            for hits in found(ann, text).values():
                for _, address in hits:
                    assert ann.get(address).status_code == 200, address


class TestQueries:
    def test_a_query_leads_to_the_list_with_its_filters(
        self, ann: Client, cases: Subscription
    ) -> None:
        row = factories.delivery(Status.REJECTED, subscription=cases)
        factories.delivery(Status.REJECTED)
        factories.delivery(subscription=cases)
        shown = found(ann, "status:failed subscriber:shop-crm since:1h")["Lists with these filters"]
        assert [title for title, _ in shown] == ["Deliveries", "Messages"]
        parameters = dict(parse_qsl(urlsplit(shown[0][1]).query))
        assert parameters.keys() == {"tab", "subscriber", "since"}
        listed: Any = ann.get(shown[0][1]).context["cl"]
        assert [delivery.pk for delivery in listed.result_list] == [row.pk]
        listed = ann.get(shown[1][1]).context["cl"]
        assert [message.pk for message in listed.result_list] == [row.message_id]

    def test_a_text_leads_to_the_messages(self, ann: Client, cases: Subscription) -> None:
        message = factories.message(b'{"id": 1005}')
        row = factories.delivery(Status.REJECTED, subscription=cases, message=message)
        factories.delivery(Status.REJECTED, subscription=cases)
        query = 'status:failed subscriber:shop-crm body:"1005" since:1h'
        ((title, address),) = found(ann, query)["Lists with these filters"]
        assert title == "Messages"
        listed: Any = ann.get(address).context["cl"]
        assert [shown.pk for shown in listed.result_list] == [row.message_id]

    def test_mistakes_are_reported(self, ann: Client, cases: Subscription) -> None:
        assert "Did you mean shop-crm?" in mistake(ann, "subscriber:shop-crn")
        assert "Did you mean shop-crm/cases?" in mistake(ann, "subscription:shop-crm/case")
        assert "Write a key before 'cases'" in mistake(ann, "status:failed cases")
        assert "There is no filter" in mistake(ann, "stats:failed")


class TestRightsToFind:
    def client_of(self, role: str) -> Client:
        user = User.objects.create_user(role.lower(), is_staff=True)
        user.groups.add(Group.objects.get(name=role))
        client = Client()
        client.force_login(user)
        return client

    def test_support_resubmits_and_holds_and_creates_nothing(self, cases: Subscription) -> None:
        sue = self.client_of("Support")
        assert found(sue, "resubmit shop-crm")["Actions"]
        assert found(sue, "hold cases")["Actions"]
        assert "Actions" not in found(sue, "publish")
        assert "Actions" not in found(sue, "new")

    def test_auditors_find_everything_and_do_nothing(self, cases: Subscription) -> None:
        ada = self.client_of("Auditors")
        assert found(ada, "shop-crm").keys() >= {"Subscriptions", "Subscribers"}
        for text in ("resubmit shop-crm", "hold cases", "cancel", "publish", "new"):
            assert "Actions" not in found(ada, text)

    def test_without_a_role_nothing_of_the_tables_is_found(self, cases: Subscription) -> None:
        user = User.objects.create_user("nobody", is_staff=True)
        nobody = Client()
        nobody.force_login(user)
        row = factories.delivery(Status.REJECTED, subscription=cases)
        for text in ("shop", row.message.public_id, "hold cases", "crm.example"):
            assert not found(nobody, text).keys() - {"Guide", "Pages"}
        assert mistake(nobody, "status:failed") == (
            "No list that you may see has all of these filters."
        )

    @pytest.mark.parametrize("role", ["", "Developers"])
    @pytest.mark.parametrize(
        ("key", "names"),
        [
            ("subscription", ("shop-crm/cases", "shop-crm/case", "none/none")),
            ("subscriber", ("shop-crm", "shop-cr", "none")),
            ("event", ("Shop.Cases", "Shop.Case", "None")),
            ("publisher", ("teamforge", "teamforg", "none")),
        ],
    )
    def test_whoever_sees_no_list_gets_one_answer_for_every_name(
        self, cases: Subscription, role: str, key: str, names: tuple[str, ...]
    ) -> None:
        factories.publisher("teamforge")
        user = User.objects.create_user("dev", is_staff=True)
        user.groups.set(Group.objects.filter(name=role))
        dev = Client()
        dev.force_login(user)
        said = {mistake(dev, f"{key}:{name}") for name in names}
        assert said == {"No list that you may see has all of these filters."}

    def test_a_list_suggests_no_names_of_objects_that_the_user_may_not_view(
        self, cases: Subscription
    ) -> None:
        user = User.objects.create_user("ray", is_staff=True)
        user.user_permissions.add(Permission.objects.get(codename="view_delivery"))
        ray = Client()
        ray.force_login(user)
        for name in ("shop-crm/cases", "shop-crm/case", "none"):
            said = "You may not see subscriptions, so you cannot search by their names."
            assert mistake(ray, f"subscription:{name}") == said
            page = ray.get("/admin/delivery/delivery/", {"subscription": name}).text
            assert said in page
            assert "shop-crm/cases" not in page.replace(name, "").replace(quote(name, ""), "")
        page = ray.get("/admin/delivery/delivery/", {"subscriber": "shop-cr"}).text
        assert "You may not see subscribers" in page
        assert "Did you mean" not in page
        assert "<datalist" not in page

    def test_actions_name_only_objects_that_the_user_may_view(self, cases: Subscription) -> None:
        user = User.objects.create_user("ray", is_staff=True)
        rights = ("add_resubmission", "change_lane", "toggle_subscription", "add_message")
        user.user_permissions.set(Permission.objects.filter(codename__in=rights))
        ray = Client()
        ray.force_login(user)
        for text in ("hold shop", "resubmit shop", "retry shop", "publish Shop"):
            assert "shop-crm" not in str(found(ray, text)), text

    def test_texts_are_only_for_people_who_may_see_payloads(self, db: None) -> None:
        user = User.objects.create_user("ray", is_staff=True)
        user.user_permissions.add(Permission.objects.get(codename="view_message"))
        ray = Client()
        ray.force_login(user)
        assert "You may not see payloads" in mistake(ray, "body:x")

    def test_a_stranger_is_sent_to_the_login(self, client: Client, db: None) -> None:
        assert client.get("/admin/omnibox/", {"q": "x"}).status_code == 302
