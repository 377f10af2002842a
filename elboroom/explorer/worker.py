"""Worker: one thread that does what it is asked, one after the other, and that never keeps a process alive."""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import Any, TypeVar

from elboroom.core.problem import Problem

T = TypeVar("T")


class Busy(Problem):
    """More questions wait than will be answered."""


class Worker:
    """A thread of its own: models share the noise of torch, so that no two may be asked at once."""

    def __init__(self, name: str, prepare: Callable[[], object] = lambda: None, most: int = 256) -> None:
        self._asked: queue.Queue[tuple[Future[Any], Callable[[], Any]]] = queue.Queue(most)
        self._prepare = prepare
        Thread(target=self._work, name=name, daemon=True).start()

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """The result, later."""
        future: Future[T] = Future()
        try:
            self._asked.put_nowait((future, work))
        except queue.Full:
            raise Busy("the explorer is asked more than it can answer; wait a moment") from None
        return future

    async def do(self, work: Callable[[], T]) -> T:
        """The result, awaited; what nobody waits for any more is not begun."""
        return await asyncio.wrap_future(self.submit(work))

    def _work(self) -> None:
        self._prepare()
        while True:
            future, work = self._asked.get()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(work())
            except BaseException as error:  # it belongs to the one who asked
                future.set_exception(error)
