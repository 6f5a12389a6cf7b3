"""An address as people without the right to change it see it: secrets in it are masked.

Receivers hide tokens in the query, or in a long part of the path (Slack, Discord, Zapier). The SQL
function `subscriptions_masked_url` follows the same rule, for texts written by statements.
"""

import re

from django.utils.crypto import salted_hmac

MASK = "•••"
# Shorter parts of a path are words; a token of 96 bits has 16 characters.
LONGEST_WORD = 15

QUERY = re.compile(r"\?.*", re.DOTALL)
LONG_PART = re.compile(rf"(?<!/)/[^/?]{{{LONGEST_WORD + 1},}}")
_ADDRESS = re.compile(r"https?://[^\s\"'<>]+", re.IGNORECASE)


def masked_address(text: str) -> str:
    """Return an endpoint, URL or other text with query and long parts of the path masked."""
    return QUERY.sub(f"?{MASK}", LONG_PART.sub(f"/{MASK}", text)) if "://" in text else text


def masked_addresses(text: str) -> str:
    """Return a text, such as a log line, with each address in it masked."""
    return _ADDRESS.sub(lambda found: masked_address(found[0]), text)


def recorded_address(text: str) -> str:
    """Return a masked address with a short mark, by which a changed secret can be seen."""
    masked = masked_address(text)
    if masked == text:
        return text
    return f"{masked} ({_mark(text)})"


def secret_address_key(url: str) -> str:
    """Return a key for a secret address: equal for equal addresses, and no way back."""
    return salted_hmac("inturn.address", url, algorithm="sha256").hexdigest()


def named_secret_address(url: str) -> str:
    """Return host, last four characters and a short mark of an address secret as a whole.

    By the mark, addresses with the same last parameter differ.
    """
    host = url.partition("://")[2].partition("/")[0].partition("?")[0]
    return f"{host} {MASK}{url[-4:]} ({_mark(url)})"


def _mark(url: str) -> str:
    return secret_address_key(url)[:6]
