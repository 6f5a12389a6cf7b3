"""The console's pages: each imported module registers its pages."""

# ruff: noqa: F401
import delivery.console.archive.admin
import delivery.console.bulk_jobs.admin
import delivery.console.common_scripts.admin
import delivery.console.configuration.log
import delivery.console.deliveries.admin
import delivery.console.event_types.admin
import delivery.console.health.admin
import delivery.console.history.admin
import delivery.console.incidents.admin
import delivery.console.incidents.rules
import delivery.console.journal.admin
import delivery.console.lanes.admin
import delivery.console.messages.admin
import delivery.console.own.admin
import delivery.console.payloads.admin
import delivery.console.people.role
import delivery.console.people.sign_in
import delivery.console.people.user
import delivery.console.pipeline.findings
import delivery.console.pipeline.runs
import delivery.console.pipeline.schedules
import delivery.console.policies.admin
import delivery.console.publishers.api_key
import delivery.console.publishers.publisher
import delivery.console.receivers.admin
import delivery.console.replays.admin
import delivery.console.retention.admin
import delivery.console.subscribers.admin
import delivery.console.subscriptions.admin
