"""How log records are written: one line each, whatever is in them."""

from __future__ import annotations

import json
import logging
import sys

import pytest

from apiserver.log_format import JSONFormatter, LineFormatter

EVIL = 'a\r\nforged "line" \x1b[2J \udcff'


def record(message: str, *, fails: bool = False) -> logging.LogRecord:
    try:
        if fails:
            raise ValueError(EVIL)
    except ValueError:
        return logging.LogRecord("apiserver.x", logging.ERROR, "f.py", 1, "%s", (message,), sys.exc_info())
    return logging.LogRecord("apiserver.x", logging.WARNING, "f.py", 1, "%s", (message,), None)


def test_a_record_is_one_line_of_json() -> None:
    line = JSONFormatter().format(record(EVIL, fails=True))
    assert len(line.splitlines()) == 1
    told = json.loads(line)
    assert (told["level"], told["logger"]) == ("error", "apiserver.x")
    assert told["msg"] == 'a\r\nforged "line" \x1b[2J \\udcff'
    assert "Traceback" in told["err"]
    assert told["ts"] > 1e12
    assert "err" not in json.loads(JSONFormatter().format(record("fine")))


def test_a_message_is_one_line_of_text() -> None:
    line = LineFormatter().format(record(EVIL))
    assert len(line.splitlines()) == 1
    assert line.endswith('WARNING apiserver.x: a\\r\\nforged "line" \\x1b[2J \\udcff')


@pytest.mark.parametrize("formatter", [JSONFormatter(), LineFormatter()], ids=["json", "text"])
def test_a_message_is_cut(formatter: logging.Formatter) -> None:
    line = formatter.format(record("x" * 1_000_000))
    assert "...TRUNCATED" in line
    assert len(line) < 5000
