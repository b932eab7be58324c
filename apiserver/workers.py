"""Several processes that do the same work: started, watched, started again when one dies, and ended together.

Workers are forks of the process that watches them: they share what it has imported, and one that has died is there again in a moment. That
process does nothing but wait, so it has no threads and no event loop that a fork could break. Knows nothing of what the work is.

Ending: SIGTERM and SIGINT are passed on to all workers, each time that they come; when the last one has gone, so does the watching process.
A worker whose watching process has been killed is told to end (on Linux).
"""

from __future__ import annotations

import ctypes
import gc
import logging
import os
import random
import selectors
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

_log = logging.getLogger(__name__)

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD)
_PR_SET_PDEATHSIG = 1
_PAUSE_SECONDS = 0.5
"""Before a worker is started again after a short life; doubled after each further one. After a long life: none."""
_PAUSE_SECONDS_MAX = 30.0
_LONG_LIFE_SECONDS = 60.0

Work = Callable[[Callable[[], None]], int]
"""Calls the function that it is given once it can be used; returns its exit code."""


def supervise(count: int, work: Work, *, ready: Callable[[], None], stopping: Callable[[], None]) -> int:
    """Do the work in so many processes, until SIGTERM or SIGINT; return the exit code: 0 when all of them have ended with that.

    `ready` is called once, when all of them can be used for the first time; `stopping` once, at the first signal. When one gives up before
    that, trying again would not help: all are ended, and its exit code is returned.
    """
    gc.freeze()  # what the collector does not write to stays shared
    with _woken_by_signals() as wakes:
        return _Supervisor(work, wakes).run(count, ready, stopping)


@contextmanager
def _woken_by_signals() -> Iterator[int]:
    """A descriptor from which the numbers of the signals can be read that have come."""
    reading, writing = os.pipe()
    for end in (reading, writing):
        os.set_blocking(end, False)
    before = {number: signal.signal(number, lambda *_: None) for number in _SIGNALS}
    wakeup = signal.set_wakeup_fd(writing)
    try:
        yield reading
    finally:
        signal.set_wakeup_fd(wakeup)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(reading)
        os.close(writing)


@dataclass(slots=True)
class _Worker:
    started: float = 0.0
    short_lives: int = 0
    again_at: float | None = None
    """When it is to be started again."""


class _Supervisor:
    def __init__(self, work: Work, wakes: int) -> None:
        self._work = work
        self._wakes = wakes
        self._told, self._tell = os.pipe()
        self._workers: list[_Worker] = []
        self._running: dict[int, _Worker] = {}
        self._stopping = False
        self._code = 0

    def run(self, count: int, ready: Callable[[], None], stopping: Callable[[], None]) -> int:
        self._workers = [_Worker() for _ in range(count)]
        for worker in self._workers:
            self._start(worker)
        missing = count
        with selectors.DefaultSelector() as selector:
            selector.register(self._wakes, selectors.EVENT_READ)
            selector.register(self._told, selectors.EVENT_READ)
            while self._running or not self._stopping:
                came = {key.fd for key, _ in selector.select(self._pause())}
                if self._told in came and missing > 0:
                    missing -= len(os.read(self._told, missing))
                    if missing == 0:
                        selector.unregister(self._told)
                        ready()
                for number in os.read(self._wakes, 64) if self._wakes in came else b"":
                    if number != signal.SIGCHLD:
                        if not self._stopping:
                            stopping()
                        self._stop(number)
                self._bury(starting=missing > 0)
                self._start_again()
        os.close(self._told)
        os.close(self._tell)
        return self._code

    def _pause(self) -> float | None:
        due = [worker.again_at for worker in self._workers if worker.again_at is not None]
        return max(0.0, min(due) - time.monotonic()) if due and not self._stopping else None

    def _start(self, worker: _Worker) -> None:
        worker.started, worker.again_at = time.monotonic(), None
        sys.stdout.flush()
        sys.stderr.flush()
        # A signal that comes in between would be told to the one process and be meant for the other.
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        pid = os.fork()
        if pid == 0:
            _be_worker(self._work, self._tell)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        self._running[pid] = worker

    def _start_again(self) -> None:
        now = time.monotonic()
        for worker in self._workers:
            if worker.again_at is not None and worker.again_at <= now and not self._stopping:
                self._start(worker)

    def _stop(self, number: int) -> None:
        self._stopping = True
        for pid in self._running:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def _bury(self, *, starting: bool) -> None:
        """Take notice of the workers that have ended. `starting`: one that gives up takes the others with it."""
        while self._running:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            worker, code = self._running.pop(pid), os.waitstatus_to_exitcode(status)
            if self._stopping:
                # Ended by a signal before it knew what to do with that: it had nothing to finish.
                self._code = max(self._code, 0 if code == -signal.SIGTERM else abs(code))
            elif starting and code > 0:
                self._code = code
                self._stop(signal.SIGTERM)
            else:
                self._plan(worker, pid, code)

    def _plan(self, worker: _Worker, pid: int, code: int) -> None:
        now = time.monotonic()
        if now - worker.started >= _LONG_LIFE_SECONDS:
            worker.short_lives = 0
            pause = 0.0
        else:
            pause = min(_PAUSE_SECONDS * 2**worker.short_lives, _PAUSE_SECONDS_MAX)
            worker.short_lives += 1
        worker.again_at = now + pause
        how = f"was ended by signal {-code}" if code < 0 else f"has ended with {code}"
        _log.error("worker %d %s; another one is started in %g seconds", pid, how, pause)


def _be_worker(work: Work, tell: int) -> None:
    """Do the work in this process, and end it."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        # A terminal's Ctrl-C would reach it twice otherwise.
        os.setpgid(0, 0)
        with suppress(AttributeError, OSError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        random.seed()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        code = work(lambda: _tell_ready(tell))
    except BaseException:
        traceback.print_exc()
    finally:
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _tell_ready(tell: int) -> None:
    os.write(tell, b".")
