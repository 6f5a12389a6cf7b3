"""Every field of the configuration is in its document, or left out for a reason."""

import pytest
from django.apps import apps

from delivery.configuration.document.checking import _SERIALIZERS
from delivery.configuration.document.document import LEFT_OUT_MODELS, SECTIONS, Section


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.name)
def test_every_field_is_in_the_document_or_left_out_for_a_reason(section: Section) -> None:
    meta = section.model._meta
    columns = {field.name for field in (*meta.concrete_fields, *meta.many_to_many)}
    assert columns == set(section.fields) | set(section.left_out)
    assert set(section.fields).isdisjoint(section.left_out)
    assert all(section.left_out.values())


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.name)
def test_every_field_of_the_document_is_checked_as_if_typed(section: Section) -> None:
    checked = _SERIALIZERS[section.name]().fields
    assert {
        name for name in section.fields if name not in checked or checked[name].read_only
    } == set()


def test_every_model_is_in_the_document_or_left_out_for_a_reason() -> None:
    models = set(apps.get_app_config("subscriptions").get_models(include_auto_created=False))
    assert models == {section.model for section in SECTIONS} | set(LEFT_OUT_MODELS)
