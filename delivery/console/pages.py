"""The console's pages about messages and deliveries: each imported module registers its own."""

# ruff: noqa: F401
import delivery.console.archive.admin
import delivery.console.bulk_jobs.admin
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
import delivery.console.pipeline.findings
import delivery.console.pipeline.runs
import delivery.console.pipeline.schedules
import delivery.console.receivers.admin
import delivery.console.replays.admin
import delivery.console.retention.admin
import delivery.console.subscribers.admin
import delivery.console.subscriptions.admin
