"""The queue of posts: its order, and its limits."""

import asyncio
import threading
from collections.abc import Callable, Iterator

import pytest

from delivery.incoming.short_way import posts
from delivery.incoming.short_way.posts import Post, Posts

MakePost = Callable[..., Post]


@pytest.fixture
def post() -> Iterator[MakePost]:
    loop = asyncio.new_event_loop()
    yield lambda key, body=b"{}", messages=1: Post(
        key, "E", {}, body, loop.create_future(), messages
    )
    loop.close()


def test_every_key_has_its_turn_and_its_order(post: MakePost) -> None:
    waiting = Posts()
    many = [post("many") for _ in range(2 * posts.MOST_TOGETHER)]
    few = [post("few") for _ in range(3)]
    for posted in many + few:
        assert waiting.put(posted)
    first = waiting.take()
    assert len(first) == posts.MOST_TOGETHER
    assert [posted for posted in first if posted.key == "few"] == few
    rest = [posted for posted in first if posted.key == "many"] + waiting.take() + waiting.take()
    assert rest == many


def test_a_group_is_bounded_in_bytes(post: MakePost) -> None:
    waiting = Posts()
    for _ in range(3):
        waiting.put(post("key", bytes(posts.MOST_BYTES_TOGETHER // 2)))
    assert [len(waiting.take()), len(waiting.take())] == [2, 1]


def test_it_is_quiet_while_one_group_without_others_is_stored(post: MakePost) -> None:
    waiting = Posts()
    for key in ("one", "another"):
        waiting.put(post(key, bytes(posts.MOST_BYTES_TOGETHER)))
    for is_quiet in (False, True):
        waiting.take()
        assert waiting.is_quiet == is_quiet
    waiting.put(post("one"))
    thread = threading.Thread(target=waiting.take)
    thread.start()
    thread.join()
    assert not waiting.is_quiet


def test_no_more_wait_than_may(post: MakePost) -> None:
    waiting = Posts()
    assert all(waiting.put(post("key")) for _ in range(posts.MOST_WAITING))
    assert not waiting.put(post("another"))
    waiting.take()
    assert waiting.put(post("another"))


def test_a_batch_counts_as_all_its_messages(post: MakePost) -> None:
    waiting = Posts()
    for _ in range(4):
        assert waiting.put(post("key", messages=posts.MOST_TOGETHER // 2))
    assert [len(waiting.take()), len(waiting.take())] == [2, 2]
    for _ in range(10):
        assert waiting.put(post("key", messages=posts.MOST_MESSAGES_WAITING // 10))
    assert not waiting.put(post("another"))
    waiting.take()
    assert waiting.put(post("another"))


def test_queued_posts_are_taken_before_a_closed_queue_ends(post: MakePost) -> None:
    waiting = Posts()
    waiting.put(post("key"))
    waiting.close()
    assert [len(waiting.take()), len(waiting.take())] == [1, 0]
