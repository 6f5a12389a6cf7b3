"""Every field of the document is checked; every model is in it, or left out for a reason."""

import pytest
from django.apps import apps

from delivery.configuration.document.checking import _SERIALIZERS
from delivery.configuration.document.document import LEFT_OUT_MODELS, SECTIONS, Section


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.name)
def test_every_field_of_the_document_is_checked_as_if_typed(section: Section) -> None:
    checked = _SERIALIZERS[section.name]().fields
    assert {
        name for name in section.fields if name not in checked or checked[name].read_only
    } == set()


def test_every_model_is_in_the_document_or_left_out_for_a_reason() -> None:
    models = set(apps.get_app_config("subscriptions").get_models(include_auto_created=False))
    assert models == {section.model for section in SECTIONS} | set(LEFT_OUT_MODELS)
