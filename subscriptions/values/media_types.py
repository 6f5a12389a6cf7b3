"""Media types: validation, and which of them are JSON."""

from django.core.validators import RegexValidator

JSON = "application/json"

validate_media_type = RegexValidator(
    r"\A[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+(?: ?; ?[A-Za-z0-9_.-]+=[A-Za-z0-9_.:+-]+)*\Z",
    "Give a media type, such as application/json or text/plain.",
)


def media_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def is_json(content_type: str) -> bool:
    essence = media_type(content_type)
    return essence == JSON or essence.endswith("+json")
