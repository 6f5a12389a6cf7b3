"""The application that granian serves: Django over RSGI."""

import gc
from functools import partial
from importlib import import_module

from django.conf import settings
from prometheus_client import Gauge

# First, because the imports below import models.
from config.wsgi import application as wsgi_application

# isort: split
from config.web.body_limits import limit_of
from config.web.bridge import Bridge
from config.web.connections import max_connections
from config.web.refusals import refusal_of
from config.web.request_bodies import Bounds
from config.web.requesters import KnownRequesters
from config.web.short_way import Publishing

# Now, so that no import can fail while a refusal resolves its path.
import_module(settings.ROOT_URLCONF)

MAX_BATCH_BYTES: int = settings.DATA_UPLOAD_MAX_MEMORY_SIZE

application = Bridge(
    wsgi_application,
    threads=settings.ENVIRONMENT.web_threads,
    bounds=Bounds(
        limit_of=partial(
            limit_of,
            max_message_bytes=settings.ENVIRONMENT.max_message_bytes,
            max_batch_bytes=MAX_BATCH_BYTES,
        ),
        requesters=KnownRequesters(),
        # As much as all threads can handle at once.
        capacity=settings.ENVIRONMENT.web_threads * MAX_BATCH_BYTES,
        share=max(settings.ENVIRONMENT.web_threads // 4, 1) * MAX_BATCH_BYTES,
        anonymous_capacity=MAX_BATCH_BYTES,
        # Enough for the longest body without a key.
        anonymous_share=MAX_BATCH_BYTES // 4,
        cookie_prefix=settings.COOKIE_PREFIX,
        anonymous_threads=max(settings.ENVIRONMENT.web_threads // 2, 1),
    ),
    # A fraction, so that no key can take all connections.
    most_at_a_mailbox=max(max_connections() // 4, 1),
    short_way=Publishing(),
    refusal_of=refusal_of,
)

# A request creates thousands of objects, and almost none needs the garbage collector. A collection
# after every 700th, over all loaded objects, took a twelfth of the time.
gc.freeze()
gc.set_threshold(20_000, 10, 10)

Gauge("inturn_waiting_clients", "Clients that wait at a mailbox for this process.").set_function(
    lambda: application.waiting
)
