"""`doctor`: check the environment of an installation, and give advice."""

import dataclasses
import json
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser
from django.utils import timezone

from delivery.management.client.smoke import temporary_key
from delivery.management.doctor.archive import check_archive
from delivery.management.doctor.endpoints import check_endpoints, send_test_messages
from delivery.management.doctor.findings import CheckResult, Severity, check_report
from delivery.management.doctor.installation import check_installation
from delivery.management.doctor.schemas import check_schemas
from delivery.management.doctor.standing import check_standing
from subscriptions.values.built_in_receivers import built_in_receivers


class Command(BaseCommand):
    help = (
        "Check the base URL and its proxy (do FILTER_STRING and answers to callbacks arrive?), "
        "the clock, the disk, the archive, stored JSON Schemas, which subscriptions are STOPPED or "
        "DOWN, and each endpoint's name, network, connection and certificate. "
        "Exits with 1 when a check failed. Run it on each machine that sends."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--url", default=settings.ENVIRONMENT.base_url)
        parser.add_argument("--json", action="store_true", help="print the findings as a JSON list")
        parser.add_argument(
            "--send-test-messages",
            action="store_true",
            help="also send each ACTIVE subscription's endpoint a test message",
        )

    def handle(
        self, *args: Any, url: str, json: bool, send_test_messages: bool, **options: Any
    ) -> None:
        findings = _findings(url.rstrip("/"), with_test_messages=send_test_messages)
        self.stdout.write(_as_json(findings) if json else "\n".join(check_report(findings)))
        if any(finding.severity is Severity.FAILED for finding in findings):
            raise SystemExit(1)


def _findings(url: str, *, with_test_messages: bool) -> list[CheckResult]:
    environment = settings.ENVIRONMENT
    with temporary_key() as key:
        findings = list(check_installation(url, key=key, home=environment.home))
    findings.append(check_archive(environment.history_url))
    findings += check_schemas()
    findings += check_standing()
    findings += check_endpoints(
        allowed_networks=environment.allowed_networks,
        built_in_receivers=built_in_receivers(environment.base_url),
    )
    if with_test_messages:
        findings += send_test_messages(actor="doctor", now=timezone.now())
    return findings


def _as_json(findings: list[CheckResult]) -> str:
    return json.dumps(
        [dataclasses.asdict(finding) for finding in findings], indent=2, ensure_ascii=False
    )
