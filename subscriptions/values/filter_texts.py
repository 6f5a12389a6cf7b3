"""Validation of filters and of paths of the filter language; refusals have line and column."""

from django.core.exceptions import ValidationError

from subscriptions.filters import FilterError, parse_filter, parse_path
from subscriptions.values.refusals import Place


def validate_filter(text: str) -> None:
    if text:
        try:
            parse_filter(text)
        except FilterError as error:
            raise _refused(error) from None


def validate_path(text: str) -> None:
    """Refuse anything but a path such as `$$->'Body'->>'id'`."""
    if not text:
        return
    try:
        parse_path(text)
    except FilterError as error:
        message = f"{error.message}; a path is wanted, such as $$->'Body'->>'id'"
        raise _refused(FilterError(message, error.line, error.column)) from None


def _refused(error: FilterError) -> ValidationError:
    place = Place(error.line, error.column)
    return ValidationError(str(error), code=place)  # type: ignore[arg-type]
