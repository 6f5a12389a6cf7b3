"""The form of a role: the rights as sentences to tick.

A sentence stands for a right or several. Ticking it adds them, unticking removes them; all rights,
singly, are below.
"""

from typing import Any

from django import forms
from django.contrib.auth.models import Group, Permission
from django.db.models import QuerySet
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget

from delivery.console.people import rights, role_words


class RightsField(forms.ModelMultipleChoiceField):  # type: ignore[type-arg]
    """Rights as checkboxes: in a multiple-select list one click without Ctrl drops all others."""

    widget = UnfoldAdminCheckboxSelectMultipleWidget

    def label_from_instance(self, obj: Permission) -> str:
        return obj.name


class RoleForm(forms.ModelForm[Group]):
    """`grantor` fills in the form, and grants only own rights."""

    grantor: Any
    sentences = forms.MultipleChoiceField(
        label="Rights",
        required=False,
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "sentences" not in self.fields:
            return
        known = rights.rights_of(self.grantor).select_related("content_type")
        self._bundles = _bundles(known)
        field = self.fields["sentences"]
        assert isinstance(field, forms.MultipleChoiceField)
        field.choices = [(key, words) for key, (words, _) in self._bundles.items()]
        held = _permissions(self.instance)
        self.initial["sentences"] = [
            key for key, (_, ids) in self._bundles.items() if ids and ids <= held
        ]

    def clean(self) -> dict[str, Any]:
        """Apply the newly ticked or unticked sentences to the ticked rights."""
        cleaned = super().clean() or {}
        if "sentences" not in cleaned or "permissions" not in cleaned:
            return cleaned
        before, now = set(self.initial["sentences"]), set(cleaned["sentences"])
        ids = {permission.pk for permission in cleaned["permissions"]}
        for key in before - now:
            ids -= self._bundles[key][1]
        for key in now:
            ids |= self._bundles[key][1] if key not in before else set()
        cleaned["permissions"] = rights.rights_of(self.grantor).filter(pk__in=ids)
        return cleaned


def _permissions(role: Group) -> set[int]:
    return set(role.permissions.values_list("pk", flat=True)) if role.pk else set()


def _bundles(known: QuerySet[Permission]) -> dict[str, tuple[str, set[int]]]:
    """Return key → sentence and ids of rights, of the sentences whose rights are all known."""
    ids = {f"{each.content_type.app_label}.{each.codename}": each.pk for each in known}
    return {
        key: (words, {ids[name] for name in names})
        for key, (words, names) in role_words.bundles(ids).items()
        if names and names <= ids.keys()
    }
