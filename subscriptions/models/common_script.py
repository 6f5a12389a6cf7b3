"""Common scripts, which scripts of subscriptions include by name."""

from django.db import models

from subscriptions.models.named_object import Named, Watched


class CommonScript(Named):
    """A script which others include with a line `$include$name`.

    With `runs_first` it is executed before each script of a subscription; several in the order of
    their names.
    """

    runs_first = models.BooleanField(
        default=False,
        help_text="It is executed before each script of a subscription, which need not include it.",
    )
    text = models.TextField(help_text="JavaScript (ES5), as in scripts of subscriptions.")


class ScriptLibrary(Watched):
    """A single row: how often common scripts changed; without it never. A trigger counts."""

    version = models.IntegerField(default=0)

    class Meta:
        # Nobody sees it.
        default_permissions = ()
        constraints = [
            models.CheckConstraint(name="scriptlibrary_is_one_row", condition=models.Q(pk=1))
        ]

    def __str__(self) -> str:
        return f"version {self.version}"
