"""A saved view of a list: the filters under a name."""

from django.contrib.auth.models import User
from django.db import models


class SavedView(models.Model):
    """The filters of a list, as the query of the address, for the owner or for everybody.

    `list_name` is the list's model, such as `delivery.delivery`. A view is only a link: whoever
    opens it sees rows within their own rights.
    """

    MAX_NAME_LENGTH = 80
    MAX_QUERY_LENGTH = 2_000

    owner = models.ForeignKey(User, on_delete=models.CASCADE, related_name="saved_views")
    list_name = models.CharField(max_length=100)
    name = models.CharField(max_length=MAX_NAME_LENGTH)
    query = models.CharField(max_length=MAX_QUERY_LENGTH)
    is_shared = models.BooleanField(default=False)

    class Meta:
        # `delivery.console.saved_views` has the rights.
        default_permissions = ()
        ordering = ["name", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "list_name", "name"], name="saved_view_has_its_name_once"
            )
        ]
        indexes = [models.Index(fields=["list_name", "name"], name="saved_view_of_list")]

    def __str__(self) -> str:
        return self.name
