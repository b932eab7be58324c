"""Log records as one line of JSON each, as Kubernetes' components write them with `--logging-format=json`.

What a client has a hand in is escaped and cut, so that nobody can forge a line, or fill a disk with one.
Source: https://kubernetes.io/docs/concepts/cluster-administration/system-logs/#json-log-format
"""

from __future__ import annotations

import logging

import orjson

MESSAGE_CHARACTERS = 4096
_ERROR_CHARACTERS = 4 * MESSAGE_CHARACTERS


class JSONFormatter(logging.Formatter):
    """Time in milliseconds since the epoch, level, logger, message, and the traceback if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        told: dict[str, str | float] = {
            "ts": round(record.created * 1000, 3),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": _cut(record.getMessage(), MESSAGE_CHARACTERS),
        }
        if record.exc_info:
            told["err"] = _cut(self.formatException(record.exc_info), _ERROR_CHARACTERS)
        return orjson.dumps(told).decode()


class LineFormatter(logging.Formatter):
    """For people: text, each message one line of printable characters; tracebacks follow as they are."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the library's name
        """Return the first line of a record."""
        if not record.message.isprintable():
            record.message = "".join(one if one.isprintable() else ascii(one)[1:-1] for one in record.message)
        record.message = _cut(record.message, MESSAGE_CHARACTERS)
        return super().formatMessage(record)


def _cut(text: str, characters: int) -> str:
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= characters else f"{text[:characters]}...TRUNCATED"
