"""Calls of the application are queued fairly."""

import asyncio
import threading

import pytest

from config.web.threads import ANONYMOUS, Threads


class Work:
    """Tasks that are done when the test releases them; `begun` has them in order."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.released = {name: threading.Event() for name in ("held 1", "held 2")}
        self.changed = threading.Condition()

    def __call__(self, task: str) -> str:
        with self.changed:
            self.begun.append(task)
            self.changed.notify_all()
        if task in self.released:
            assert self.released[task].wait(60)
        return task

    def wait_for(self, *tasks: str) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: set(tasks) <= set(self.begun), timeout=60)


def test_a_known_requesters_call_comes_after_one_of_the_strangers() -> None:
    async def scenario() -> None:
        work = Work()
        threads: Threads[str, str] = Threads(work, count=1)
        held = asyncio.ensure_future(threads.call("held 1"))
        await asyncio.sleep(0)
        await asyncio.to_thread(work.wait_for, "held 1")
        flood = [asyncio.ensure_future(threads.call(f"flood {n}")) for n in range(50)]
        known = [asyncio.ensure_future(threads.call(f"ann {n}", queue="ann")) for n in range(2)]
        other = asyncio.ensure_future(threads.call("ben", queue="ben"))
        await asyncio.sleep(0)
        work.released["held 1"].set()
        await asyncio.gather(held, *flood, *known, other)
        expected = ["held 1", "flood 0", "ann 0", "ben", "flood 1", "ann 1", "flood 2"]
        assert work.begun[:7] == expected
        threads.close()

    asyncio.run(scenario())


def test_strangers_do_not_get_all_threads() -> None:
    async def scenario() -> None:
        work = Work()
        threads: Threads[str, str] = Threads(work, count=4, anonymous=2)
        held = [
            asyncio.ensure_future(threads.call(name, queue=ANONYMOUS)) for name in work.released
        ]
        flood = [asyncio.ensure_future(threads.call(f"flood {n}")) for n in range(50)]
        await asyncio.sleep(0)
        await asyncio.to_thread(work.wait_for, *work.released)
        for number in range(50):
            assert await threads.call(f"ann {number}", queue="ann") == f"ann {number}"
        assert not any(task.startswith("flood") for task in work.begun)
        for released in work.released.values():
            released.set()
        await asyncio.gather(*held, *flood)
        assert len(work.begun) == 102
        for number in range(10):
            await threads.call(f"late {number}")
        threads.close()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("raised", "expected"),
    [(ValueError, ValueError), (SystemExit, RuntimeError), (StopIteration, RuntimeError)],
)
def test_a_call_raises_what_its_task_raises_and_the_thread_goes_on(
    raised: type[BaseException], expected: type[Exception]
) -> None:
    def work(task: str) -> str:
        if task == "fails":
            raise raised
        return task

    async def scenario() -> None:
        threads: Threads[str, str] = Threads(work, count=1)
        for _ in range(2):
            with pytest.raises(expected):
                await asyncio.wait_for(threads.call("fails"), 60)
        assert await threads.call("works") == "works"
        threads.close()

    asyncio.run(scenario())
