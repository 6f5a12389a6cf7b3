"""Validation of a subscription's filter string: the possible values of a header FILTER_STRING."""

from django.core.exceptions import ValidationError


def validate_filter_string(text: str) -> None:
    if not text.isprintable():
        raise ValidationError("It holds a control character, which no header can; remove it.")
    if text != text.strip(" "):
        raise ValidationError(
            "HTTP drops the blanks around a header's value, so this could never match; "
            "remove the blanks around it."
        )
