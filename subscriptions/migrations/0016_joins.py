"""Joins of subscriptions: ALL and ONLY ONE over an activation id."""

import django.core.validators
from django.db import migrations, models

MODES = [
    ("NONE", "none"),
    ("ALL", "ALL: one message of each is sent together"),
    ("ONLY_ONE", "ONLY ONE: the first is sent, the others are not"),
]


class Migration(migrations.Migration):
    dependencies = [("subscriptions", "0015_priorities")]

    operations = [
        migrations.AddField(
            "subscription",
            "join_mode",
            models.CharField(choices=MODES, db_default="NONE", default="NONE", max_length=8),
        ),
        migrations.AddField(
            "subscription",
            "join_name",
            models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="The subscriptions of a subscriber with the same join_mode and join_name are one join.",
                max_length=200,
            ),
        ),
        migrations.AddField(
            "subscription",
            "join_path",
            models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="Path to the activation id; empty: the header Activation.",
                max_length=1000,
            ),
        ),
        migrations.AddField(
            "subscription",
            "join_seconds",
            models.PositiveIntegerField(
                db_default=86400,
                default=86400,
                help_text="ALL: how long a message waits for the others. ONLY_ONE: how long the others are not sent.",
                validators=[
                    django.core.validators.MinValueValidator(1),
                    django.core.validators.MaxValueValidator(31 * 86400),
                ],
            ),
        ),
        migrations.AddIndex(
            "subscription",
            models.Index(
                condition=models.Q(("join_mode", "ALL")),
                fields=["subscriber", "join_name"],
                name="subscription_joining",
            ),
        ),
        migrations.AddConstraint(
            "subscription",
            models.CheckConstraint(
                condition=models.Q(
                    ("join_mode", "NONE"), models.Q(("join_name", ""), _negated=True), _connector="XOR"
                ),
                name="subscription_join_has_name",
                violation_error_message="A join needs a join_name; without one it stays empty.",
            ),
        ),
        migrations.AddConstraint(
            "subscription",
            models.CheckConstraint(
                condition=models.Q(
                    models.Q(("join_mode", "ALL"), _negated=True), ("mode", "PUSH"), _connector="OR"
                ),
                name="subscription_join_of_all_is_pushed",
                violation_error_message="A join of ALL needs a PUSH subscription.",
            ),
        ),
    ]
