"""Carries the questions of a part to another process over ZeroMQ, and the answers back.

A worker thread asks, because a question may take long and the event loop serves the clients of the
cell meanwhile: the process that is asked may be one of them. In lock-step time stands from the
instant of the question (`Pump.asked`).
"""

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable
from typing import Any, Protocol

from understudy.ports.requests import AsksProcess, Question
from understudy.wire.zmq_request import NoReplyError, ZmqRequester


class Timekeeper(Protocol):
    """The time of the cell: a `Pump`."""

    def act(self, action: Callable[[int], Any]) -> Any: ...

    def asked(self) -> None: ...

    def settled(self) -> None: ...


class AskingWire:
    """One part and the process that it asks; made on the event loop of the cell."""

    def __init__(self, part: AsksProcess, timekeeper: Timekeeper) -> None:
        self._part = part
        self._time = timekeeper
        self._loop = asyncio.get_running_loop()
        self._out: Question | None = None
        self._waiting: queue.SimpleQueue[Question | None] = queue.SimpleQueue()
        self._requester = ZmqRequester(part.where)
        self._next_requester: ZmqRequester | None = None
        self._thread = threading.Thread(target=self._run, name=f"asks {part.where}", daemon=True)
        part.on_question(self._question_changed)

    def start(self) -> None:
        self._thread.start()
        self._question_changed()

    def ask_at(self, address: str) -> None:
        """From the next question on the process is asked at this address."""
        self._next_requester = ZmqRequester(address)

    async def stop(self) -> None:
        """Ends the thread, also in the middle of a question."""
        self._out = None
        self._waiting.put(None)
        if self._thread.ident is not None:
            await asyncio.to_thread(self._thread.join)

    # ── on the event loop ──

    def _question_changed(self) -> None:
        question, before = self._part.question(), self._out
        if question == before:
            return
        self._out = question
        if question is not None:
            self._time.asked()
            self._waiting.put(question)
        if before is not None:
            self._time.settled()

    def _ended(self, question: Question, answer: bytes | None, reason: str) -> None:
        if question is not self._out:
            return  # the part has asked another one meanwhile, or none
        if answer is None:
            self._time.act(lambda now: self._part.unanswered(question.number, reason, now))
        else:
            self._time.act(lambda now: self._part.answered(question.number, answer, now))

    # ── in the thread ──

    def _run(self) -> None:
        while (question := self._waiting.get()) is not None:
            answer, reason = self._ask(question)
            with contextlib.suppress(RuntimeError):  # the event loop has ended
                self._loop.call_soon_threadsafe(self._ended, question, answer, reason)
        self._requester.close()

    def _ask(self, question: Question) -> tuple[bytes | None, str]:
        def wanted() -> bool:
            return self._out is question

        if not wanted():
            return None, "not asked any more"
        if self._next_requester is not None:
            self._requester.close()
            self._requester, self._next_requester = self._next_requester, None
        try:
            parts = self._requester.ask([question.payload], question.seconds, wanted)
        except NoReplyError as problem:
            return None, str(problem)
        return b"".join(parts), ""
