"""The WSGI application that granian serves."""

import os

from django.conf import settings
from django.core.wsgi import get_wsgi_application

from config.unchunked import unchunked

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

application = unchunked(get_wsgi_application(), max_bytes=settings.DATA_UPLOAD_MAX_MEMORY_SIZE)
