"""The policies that come with every installation: `teamforge` and `strict`."""

from typing import Any

from django.db import migrations

TEAMFORGE = (
    "What TeamForge does. An endpoint that cannot be reached blocks its subscriber until it answers. "
    "One that answers 5xx is passed over: the next message is sent, this one again later. 4xx and 3xx are final."
)
STRICT = (
    "Nothing overtakes a failed message: the subscriber is blocked until the endpoint takes it. "
    "4xx and 3xx are final. What may have been sent already is held until a person decides."
)
BLOCKING = dict.fromkeys(["on_unavailable", "on_server_error", "on_rate_limited"], "BLOCK")


def add_policies(apps: Any, schema_editor: Any) -> None:
    policies = apps.get_model("subscriptions", "Policy").objects
    policies.get_or_create(name="teamforge", defaults={"description": TEAMFORGE, "is_built_in": True})
    policies.get_or_create(
        name="strict",
        defaults={"description": STRICT, "is_built_in": True, "in_doubt": "HOLD", **BLOCKING},
    )


class Migration(migrations.Migration):
    dependencies = [("subscriptions", "0001_initial")]

    operations = [migrations.RunPython(add_policies, migrations.RunPython.noop)]
