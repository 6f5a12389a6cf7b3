"""The longest body of each path."""

import pytest

from config.web.body_limits import limit_of


@pytest.mark.parametrize(
    ("path", "limit"),
    [
        ("/api/v1/messages:batch", 20_000),
        ("/api/v1/events/A.B/messages", 1000),
        ("/callbacks/17.x", 1000),
        ("/replies/17.x", 1000),
        ("/api/v1/mailboxes/abc/reply", 1000),
        ("/admin/login/", 4000),
        ("/x", 4000),
    ],
)
def test_each_path_has_its_limit(path: str, limit: int) -> None:
    assert limit_of(path, max_message_bytes=1000, max_batch_bytes=20_000) == limit
