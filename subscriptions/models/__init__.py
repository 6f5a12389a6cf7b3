"""Event types, publishers, subscribers, subscriptions, policies, secrets, keys and sign-ins."""

from subscriptions.models.api_key import ApiKey, Scope
from subscriptions.models.change import ConfigurationChange, ConfigurationTransaction
from subscriptions.models.common_script import CommonScript, ScriptLibrary
from subscriptions.models.event_type import Durability, ErrorsWhen, EventType, Kind
from subscriptions.models.holding import Installation, Sending, SubscriberStatus, SubscriptionStatus
from subscriptions.models.policy import Action, InDoubt, Policy, Schedule, UsedUp
from subscriptions.models.publish_id import PublishId
from subscriptions.models.publisher import Publisher
from subscriptions.models.saved_view import SavedView
from subscriptions.models.secret import SigningSecret
from subscriptions.models.sign_in import Door, SignIn, SignInKind
from subscriptions.models.subscriber import MatchMode, Processing, Subscriber
from subscriptions.models.subscription import DedupMode, JoinMode, Mode, Subscription
from subscriptions.models.workfront import WorkfrontSubscription

__all__ = [
    "Action",
    "ApiKey",
    "CommonScript",
    "ConfigurationChange",
    "ConfigurationTransaction",
    "DedupMode",
    "Door",
    "Durability",
    "ErrorsWhen",
    "EventType",
    "InDoubt",
    "Installation",
    "JoinMode",
    "Kind",
    "MatchMode",
    "Mode",
    "Policy",
    "Processing",
    "PublishId",
    "Publisher",
    "SavedView",
    "Schedule",
    "Scope",
    "ScriptLibrary",
    "Sending",
    "SignIn",
    "SignInKind",
    "SigningSecret",
    "Subscriber",
    "SubscriberStatus",
    "Subscription",
    "SubscriptionStatus",
    "UsedUp",
    "WorkfrontSubscription",
]
