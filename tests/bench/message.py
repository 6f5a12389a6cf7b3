"""The message of the product and the bare loops: 1.5 kB of JSON."""

BODY = b'{"original": "%s"}' % (b"webhooks, delivered in turn. " * 52)[:1482]
HEADERS = {"Content-Type": "application/json"}
