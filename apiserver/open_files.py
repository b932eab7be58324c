"""How many files the process may have open: each connection is one."""

from __future__ import annotations

import logging

_log = logging.getLogger(__name__)


def allow_many() -> None:
    """Raise the limit to what the system allows this process without asking, as Go's runtime does for its servers.

    The usual limit of 1,024 is there for programs that use select(2), which this one does not.
    """
    try:
        import resource
    except ImportError:  # not on Windows
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError) as error:
        _log.info("the limit of open files stays at %d: %s", soft, error)
