"""The console's pages for configuration: each of these modules registers its own.

`delivery.console` registers event types, subscribers and subscriptions, because it adds deliveries
to their pages.
"""

# ruff: noqa: F401
import subscriptions.admin.applications.api_key
import subscriptions.admin.applications.publisher
import subscriptions.admin.common_scripts.admin
import subscriptions.admin.configuration_log
import subscriptions.admin.event_types.admin
import subscriptions.admin.people.role
import subscriptions.admin.people.sign_in
import subscriptions.admin.people.user
import subscriptions.admin.policies.admin
