"""Listed waits, freezing a URL that is gone, and the built-in policy `standard-webhooks`."""

from typing import Any

from django.db import migrations, models

import subscriptions.values.number_lists

STANDARD_WEBHOOKS = (
    "What the Standard Webhooks specification recommends. Whatever fails is tried again by the retry lane, 9 times "
    "within 76 hours; then it is FAILED. 429 and 503 block the lane, for as long as Retry-After says. 410 freezes the "
    "URL until a person releases it."
)
ANSWERS = ["on_unavailable", "on_server_error", "on_rate_limited", "on_client_error", "on_redirect"]
POLICY = {
    "name": "standard-webhooks",
    "description": STANDARD_WEBHOOKS,
    **dict.fromkeys(["on_unreachable", *ANSWERS], "RETRY_LANE"),
    "blocks_when_overloaded": True,
    "retry_schedule": "LISTED",
    "retry_waits": "5,300,1800,7200,18000,36000,50400,72000,86400",
    "retry_jitter": 0.1,
    "max_attempts": 10,
    "breaks_circuit": True,
    "freezes_when_gone": True,
}


def add_policy(apps: Any, _: Any) -> None:
    """Add the policy, unless an administrator has given one this name: that one stays as it is."""
    policies = apps.get_model("subscriptions", "Policy").objects
    policies.get_or_create(name=POLICY["name"], defaults=POLICY | {"is_built_in": True})


class Migration(migrations.Migration):
    dependencies = [("subscriptions", "0011_success_codes")]

    operations = [
        migrations.AddField(
            "policy",
            "retry_waits",
            models.CharField(
                blank=True,
                default="",
                help_text="Seconds, separated by commas: the waits of a LISTED schedule, such as 5,300,1800. Later "
                "retries have the last wait.",
                max_length=300,
                validators=[subscriptions.values.number_lists.check_seconds_listed],
            ),
        ),
        migrations.AlterField(
            "policy",
            "retry_schedule",
            models.CharField(
                choices=[
                    ("FIXED", "fixed: the same time after each failure"),
                    ("EXPONENTIAL", "exponential: (2^n - 1) times as long after the first failure"),
                    ("LISTED", "listed: each retry has its own wait after the failure before it"),
                ],
                default="FIXED",
                help_text="Schedule of retries. EXPONENTIAL is for the retry lane only.",
                max_length=11,
            ),
        ),
        migrations.AddField(
            "policy",
            "freezes_when_gone",
            models.BooleanField(
                default=False,
                help_text="An answer of 410 (Gone) freezes the URL at once: nothing is sent to it until a person releases "
                "it. It needs breaks_circuit.",
            ),
        ),
        migrations.RunPython(add_policy, migrations.RunPython.noop),
    ]
