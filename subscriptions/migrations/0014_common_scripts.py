"""Common scripts; the database counts their changes, so that no way of writing one is forgotten."""

import re
from importlib import import_module

from django.core.validators import RegexValidator
from django.db import migrations, models

note_change = import_module("subscriptions.migrations.0003_changes").note_change

FUNCTION = """
CREATE FUNCTION subscriptions_count_common_scripts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO subscriptions_scriptlibrary AS library (id, version) VALUES (1, 1)
    ON CONFLICT (id) DO UPDATE SET version = library.version + 1;
    RETURN NULL;
END
$$
"""
TRIGGER = """
CREATE TRIGGER count_common_scripts
AFTER INSERT OR DELETE OR UPDATE OF name, text, runs_first ON subscriptions_commonscript
FOR EACH STATEMENT EXECUTE FUNCTION subscriptions_count_common_scripts()
"""


class Migration(migrations.Migration):
    dependencies = [("subscriptions", "0013_headers_of_subscribers")]

    operations = [
        migrations.CreateModel(
            "CommonScript",
            [
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "name",
                    models.CharField(
                        max_length=200,
                        unique=True,
                        validators=[
                            RegexValidator(
                                re.compile("\\A[A-Za-z0-9][A-Za-z0-9._-]*\\Z"),
                                "Use letters, digits, dots, hyphens and underscores; begin with a letter or digit.",
                            )
                        ],
                    ),
                ),
                ("description", models.TextField(blank=True, default="")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("text", models.TextField(help_text="JavaScript (ES5), as in scripts of subscriptions.")),
                (
                    "runs_first",
                    models.BooleanField(
                        default=False,
                        help_text="It is executed before each script of a subscription, which need not include it.",
                    ),
                ),
            ],
            options={"ordering": ["name"], "abstract": False},
        ),
        migrations.CreateModel(
            "ScriptLibrary",
            [
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("changed_in", models.BigIntegerField(editable=False, null=True)),
                ("version", models.IntegerField(default=0)),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("pk", 1)), name="scriptlibrary_is_one_row")
                ],
            },
        ),
        migrations.AddIndex(
            "subscription",
            models.Index(
                condition=models.Q(("script", ""), _negated=True), fields=["id"], name="subscription_scripted"
            ),
        ),
        migrations.RunSQL(FUNCTION, "DROP FUNCTION subscriptions_count_common_scripts()"),
        migrations.RunSQL(TRIGGER, "DROP TRIGGER count_common_scripts ON subscriptions_commonscript"),
        migrations.RunSQL(note_change("scriptlibrary"), migrations.RunSQL.noop),
    ]
