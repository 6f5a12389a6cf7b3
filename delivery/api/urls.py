"""URL patterns of the REST API, but for the configuration as a document."""

from django.urls import URLPattern, re_path

from delivery.api.base.patterns import ID, NAME, resource_urls
from delivery.api.batch import BatchView
from delivery.api.configured.common_scripts import CommonScriptViews
from delivery.api.configured.event_types import EventTypeViews
from delivery.api.configured.keys import (
    AccessKeyViews,
    KeyViews,
    PublisherKeyViews,
    SubscriberKeyViews,
)
from delivery.api.configured.policies import PolicyViews
from delivery.api.configured.publish_ids import PublishIdViews
from delivery.api.configured.publishers import PublisherViews
from delivery.api.deliveries import DeliveryViews
from delivery.api.holding import InstallationViews
from delivery.api.incidents import IncidentViews
from delivery.api.lanes import LaneViews
from delivery.api.mailboxes import MailboxViews
from delivery.api.messages import MessageViews
from delivery.api.publish import PublishView
from delivery.api.replays import ReplayViews
from delivery.api.resubmissions import CancellationViews, ResubmissionViews
from delivery.api.retention import RetentionViews
from delivery.api.script_trials import ScriptTrialView
from delivery.api.subscribing.filters import FilterCheckView
from delivery.api.subscribing.secrets import SecretViews
from delivery.api.subscribing.subscribers import SubscriberViews
from delivery.api.subscribing.subscriptions import SubscriptionViews
from delivery.api.url_health import UrlHealthViews

LANE = rf"(?P<name>{NAME}|[a-z]{{1,8}}:[0-9]{{1,4}})"
MAILBOX = rf"(?P<subscriber>{NAME})"
MESSAGE = r"(?P<id>(?:msg_)?[0-9]{1,18})"


def key_urls(prefix: str, views: type[KeyViews | PublishIdViews]) -> list[URLPattern]:
    return [
        re_path(rf"^{prefix}\Z", views.as_view({"get": "list", "post": "create"})),
        re_path(
            rf"^{prefix}/(?P<pk>{ID})\Z", views.as_view({"get": "retrieve", "delete": "destroy"})
        ),
    ]


# Matched in this order: the routes with thousands of requests a second come first.
urlpatterns = [
    re_path(rf"^events/(?P<event_type>{NAME})/messages\Z", PublishView.as_view()),
    re_path(r"^messages:batch\Z", BatchView.as_view()),
    re_path(rf"^mailboxes/{MAILBOX}/next\Z", MailboxViews.as_view({"post": "next"})),
    re_path(rf"^mailboxes/{MAILBOX}/ack\Z", MailboxViews.as_view({"post": "ack"})),
    re_path(rf"^mailboxes/{MAILBOX}/release\Z", MailboxViews.as_view({"post": "release"})),
    re_path(rf"^mailboxes/{MAILBOX}/extend\Z", MailboxViews.as_view({"post": "extend"})),
    re_path(rf"^mailboxes/{MAILBOX}/reject\Z", MailboxViews.as_view({"post": "reject"})),
    re_path(rf"^mailboxes/{MAILBOX}/reply\Z", MailboxViews.as_view({"post": "reply"})),
    re_path(rf"^mailboxes/{MAILBOX}/status\Z", MailboxViews.as_view({"get": "status"})),
    re_path(r"^messages\Z", MessageViews.as_view({"get": "list"})),
    re_path(rf"^messages/{MESSAGE}\Z", MessageViews.as_view({"get": "retrieve"})),
    re_path(rf"^messages/{MESSAGE}/explain\Z", MessageViews.as_view({"get": "explain"})),
    re_path(r"^deliveries\Z", DeliveryViews.as_view({"get": "list"})),
    re_path(rf"^deliveries/(?P<pk>{ID})\Z", DeliveryViews.as_view({"get": "retrieve"})),
    re_path(rf"^deliveries/(?P<pk>{ID})/cancel\Z", DeliveryViews.as_view({"post": "cancel"})),
    re_path(rf"^deliveries/(?P<pk>{ID})/resubmit\Z", DeliveryViews.as_view({"post": "resubmit"})),
    re_path(
        rf"^deliveries/(?P<pk>{ID})/mark-delivered\Z",
        DeliveryViews.as_view({"post": "mark_delivered"}),
    ),
    re_path(r"^cancellations\Z", CancellationViews.as_view({"get": "list", "post": "create"})),
    re_path(rf"^cancellations/(?P<pk>{ID})\Z", CancellationViews.as_view({"get": "retrieve"})),
    re_path(
        rf"^cancellations/(?P<pk>{ID})/cancel\Z", CancellationViews.as_view({"post": "cancel"})
    ),
    re_path(r"^resubmissions\Z", ResubmissionViews.as_view({"get": "list", "post": "create"})),
    re_path(rf"^resubmissions/(?P<pk>{ID})\Z", ResubmissionViews.as_view({"get": "retrieve"})),
    re_path(
        rf"^resubmissions/(?P<pk>{ID})/cancel\Z", ResubmissionViews.as_view({"post": "cancel"})
    ),
    re_path(r"^replays\Z", ReplayViews.as_view({"get": "list", "post": "create"})),
    re_path(rf"^replays/(?P<pk>{ID})\Z", ReplayViews.as_view({"get": "retrieve"})),
    re_path(rf"^replays/(?P<pk>{ID})/start\Z", ReplayViews.as_view({"post": "start"})),
    re_path(rf"^replays/(?P<pk>{ID})/cancel\Z", ReplayViews.as_view({"post": "cancel"})),
    re_path(r"^retention-runs\Z", RetentionViews.as_view({"get": "list", "post": "create"})),
    re_path(rf"^retention-runs/(?P<pk>{ID})\Z", RetentionViews.as_view({"get": "retrieve"})),
    re_path(r"^incidents\Z", IncidentViews.as_view({"get": "list"})),
    re_path(rf"^incidents/(?P<pk>{ID})\Z", IncidentViews.as_view({"get": "retrieve"})),
    *(
        re_path(rf"^incidents/(?P<pk>{ID})/{verb}\Z", IncidentViews.as_view({"post": verb}))
        for verb in ("acknowledge", "mute", "assign", "close", "resubmit")
    ),
    re_path(r"^lanes\Z", LaneViews.as_view({"get": "list"})),
    re_path(rf"^lanes/{LANE}\Z", LaneViews.as_view({"get": "retrieve"})),
    re_path(rf"^lanes/{LANE}/retry\Z", LaneViews.as_view({"post": "retry"})),
    re_path(rf"^lanes/{LANE}/skip\Z", LaneViews.as_view({"post": "skip"})),
    re_path(rf"^lanes/{LANE}/resume\Z", LaneViews.as_view({"post": "resume"})),
    re_path(r"^url-health\Z", UrlHealthViews.as_view({"get": "list"})),
    re_path(r"^url-health/release\Z", UrlHealthViews.as_view({"post": "release"})),
    re_path(
        r"^installation\Z",
        InstallationViews.as_view({"get": "retrieve", "patch": "partial_update"}),
    ),
    re_path(rf"^subscriptions/(?P<pk>{ID})/try\Z", ScriptTrialView.as_view()),
    *resource_urls("subscribers", SubscriberViews),
    *resource_urls("subscriptions", SubscriptionViews),
    *resource_urls("event-types", EventTypeViews),
    *resource_urls("publishers", PublisherViews),
    *key_urls(rf"publishers/(?P<owner>{NAME})/keys", PublisherKeyViews),
    *key_urls(rf"publishers/(?P<owner>{NAME})/publish-ids", PublishIdViews),
    *key_urls(rf"subscribers/(?P<owner>{NAME})/keys", SubscriberKeyViews),
    *resource_urls("policies", PolicyViews),
    *resource_urls("common-scripts", CommonScriptViews),
    *key_urls("keys", AccessKeyViews),
    re_path(rf"^subscriptions/(?P<pk>{ID})/secrets\Z", SecretViews.as_view()),
    re_path(r"^filters/check\Z", FilterCheckView.as_view()),
]
