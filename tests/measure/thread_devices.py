"""Devices that are asynchronous without a GPU: a thread that takes kernels from a queue."""

from __future__ import annotations

import hashlib
import math
import queue
import threading
import time

DATA = bytes(2 << 20)


class ThreadDevice:
    """An asynchronous device: a thread that takes kernels from a queue and really works on each.

    It hashes, which lets other threads of the process run meanwhile.
    """

    def __init__(self) -> None:
        self.ran: list[tuple[float, float]] = []
        self.queue: queue.SimpleQueue = queue.SimpleQueue()
        self.left = 0
        self.changed = threading.Condition()
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def work(self) -> None:
        while self.queue.get():
            began = time.perf_counter()
            hashlib.sha256(DATA).digest()
            self.ran.append((began, time.perf_counter()))
            with self.changed:
                self.left -= 1
                self.changed.notify_all()

    @property
    def kernel_seconds(self) -> float:
        return min((ended - began for began, ended in self.ran), default=math.inf)

    def launch(self) -> None:
        with self.changed:
            self.left += 1
        self.queue.put("kernel")

    def synchronise(self) -> None:
        with self.changed:
            self.changed.wait_for(lambda: self.left == 0)

    def took(self, seconds: float) -> None:
        pass

    def is_idle(self) -> bool:
        return self.left == 0

    def close(self) -> None:
        try:
            while True:
                self.queue.get_nowait()
        except queue.Empty:
            self.queue.put("")
        self.thread.join()


class Unsynchronised(ThreadDevice):
    """What the wave is there to refuse: ``synchronise`` returns while kernels are still queued."""

    def launch(self) -> None:
        super().launch()
        time.sleep(4e-4)  # or the queue grows by a million kernels a second

    def synchronise(self) -> None:
        pass
