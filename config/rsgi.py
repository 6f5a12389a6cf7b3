"""The application that granian serves: Django, over RSGI."""

from django.conf import settings
from prometheus_client import Gauge

from config.bridge import Bridge
from config.wsgi import application as wsgi_application

application = Bridge(
    wsgi_application,
    threads=settings.ENVIRONMENT.web_threads,
    max_body_bytes=settings.DATA_UPLOAD_MAX_MEMORY_SIZE,
)

Gauge("inturn_waiting_clients", "Clients that wait at a mailbox for this process.").set_function(
    lambda: application.waiting
)
