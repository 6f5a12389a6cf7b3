"""A mail server, to which Inturn sends its mail."""

from collections.abc import Iterator

import pytest
from pytest_django.fixtures import Settings

from tests.support.mail_server import MailServer


@pytest.fixture
def mail_server(settings: Settings) -> Iterator[MailServer]:
    server = MailServer()
    with server.running():
        # Django's own runner would keep mails in memory.
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", server.port
        settings.EMAIL_USE_TLS = settings.EMAIL_USE_SSL = False
        settings.EMAIL_HOST_USER = settings.EMAIL_HOST_PASSWORD = ""
        yield server
