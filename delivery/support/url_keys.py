"""URLs of the circuit breaker by their keys, which people who see them masked can name them by."""

from delivery.models import UrlHealth
from subscriptions.values.shown_addresses import secret_address_key


def url_of(text: str) -> str:
    """Return the URL with this key, or a text that is a URL itself; empty: none has this key."""
    if "://" in text:
        return text
    urls = UrlHealth.objects.values_list("url", flat=True).iterator()
    return next((url for url in urls if secret_address_key(url) == text), "")
