from django.db import migrations, models

from subscriptions.filters import filter_identity


def give_identities(apps, schema_editor):
    Subscription = apps.get_model("subscriptions", "Subscription")
    for pk, text in Subscription.objects.exclude(filter="").values_list("pk", "filter"):
        Subscription.objects.filter(pk=pk).update(filter_identity=filter_identity(text))


class Migration(migrations.Migration):

    dependencies = [
        ("subscriptions", "0006_roles_and_sign_ins"),
    ]

    operations = [
        migrations.AddField(
            model_name="subscription",
            name="filter_identity",
            field=models.TextField(blank=True, default="", editable=False),
        ),
        migrations.RunPython(give_identities, migrations.RunPython.noop, elidable=True),
        migrations.AddConstraint(
            model_name="subscription",
            constraint=models.CheckConstraint(
                condition=models.Q(("filter", ""), ("filter_identity", "")) | (~models.Q(("filter", "")) & ~models.Q(("filter_identity", ""))),
                name="subscription_filter_has_identity",
            ),
        ),
    ]
