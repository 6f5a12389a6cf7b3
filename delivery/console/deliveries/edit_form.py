"""The form for editing the body of a message before it is sent again."""

from typing import Any

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from unfold.widgets import UnfoldAdminTextareaWidget

from delivery.models import Message
from delivery.support.resubmit import Edit

# The longest text for a browser's text field.
MAX_CHARACTERS = 1024 * 1024


class EditForm(forms.Form):
    """The form of an edit.

    `reason` says why the body cannot be edited; then there is no field to fill in.
    """

    body = forms.CharField(
        required=False,
        strip=False,
        widget=UnfoldAdminTextareaWidget(
            {"rows": 24, "class": "inturn-code", "spellcheck": "false"}
        ),
    )

    def __init__(self, data: Any, *, message: Message) -> None:
        self._message = message
        text, self.reason = _editable(bytes(message.body))
        # Browsers send each line break as CR LF; a body with LF keeps LF.
        self._breaks = "\r\n" if "\r\n" in text else "\n"
        super().__init__(data, initial={"body": text})

    def clean_body(self) -> str:
        if self.reason:
            raise ValidationError(self.reason)
        typed: str = self.cleaned_data["body"]
        text = typed.replace("\r\n", "\n").replace("\n", self._breaks)
        most = settings.ENVIRONMENT.max_message_bytes
        if len(text.encode()) > most:
            raise ValidationError(f"The body is longer than the limit of {most} bytes.")
        return text

    def edit(self) -> Edit:
        """Return the edited message, with the headers of the original."""
        return Edit(
            headers=self._message.headers,
            content_type=self._message.content_type,
            body=self.cleaned_data["body"].encode(),
        )


def _editable(body: bytes) -> tuple[str, str]:
    """Return the body as text, and the reason if it cannot be edited, otherwise ""."""
    by_api = "send it by the API: POST deliveries/…/resubmit with body_base64."
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return "", f"The body is not UTF-8 text; {by_api}"
    if "\0" in text:
        return "", f"The body contains a NUL, which browsers do not send; {by_api}"
    if len(text) > MAX_CHARACTERS:
        return "", f"The body is too long to be edited in a browser; {by_api}"
    return text, ""
