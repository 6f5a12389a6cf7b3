"""The settings of the mail server for incidents."""

from dataclasses import dataclass, field

from config.env_values import wrong_value

# The kinds of encryption, with the usual ports.
PORTS = {"STARTTLS": 587, "TLS": 465, "NONE": 25}


@dataclass(frozen=True, slots=True, kw_only=True)
class MailSettings:
    """Without a `host` no mail is sent. `to` are the recipients of rules without recipients."""

    host: str
    port: int
    security: str
    user: str
    password: str = field(repr=False)
    sender: str
    to: list[str]


def check_mail_address(name: str, address: str) -> str:
    """Return the address that a setting gives; raises ImproperlyConfigured."""
    before, at, host = address.rpartition("@")
    if not (before and at and host) or any(character.isspace() for character in address):
        raise wrong_value(name, address, allowed="an address like support@example.com")
    return address
