"""Which content types an event type may have."""

from django.core.validators import RegexValidator

validate_media_type = RegexValidator(
    r"\A[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+(?: ?; ?[A-Za-z0-9_.-]+=[A-Za-z0-9_.:+-]+)*\Z",
    "Give a media type, such as application/json or text/plain.",
)
