"""A process that has imported the server, and forks one that serves at each line of its standard input. Run by test_crash.

What follows the imports is the command itself: a start takes a fifth of the time, a hundred starts are a test.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

from apiserver.__main__ import main

for module in ("apiserver.kinds.worker_pool", "apiserver.serve", "storage.sqlite"):  # what the command imports when it runs
    import_module(module)


def run(data_dir: str) -> None:
    for _ in sys.stdin:
        pid = os.fork()
        if pid == 0:
            os.write(1, f"{os.getpid()}\n".encode())
            main(["serve", "--data-dir", data_dir, "--secure-port", "0"])
        os.waitpid(pid, 0)
        os.write(1, b"gone\n")


if __name__ == "__main__":
    run(sys.argv[1])
