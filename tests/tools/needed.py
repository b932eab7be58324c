"""What a test cannot do without."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import tools


def needed(name: str) -> Path:
    """The file of a program, as `tools.path`. Who lacks what builds it may skip the test, and is told so; CI may not (`conftest.py`)."""
    try:
        return tools.path(name)
    except tools.ToolError as error:
        pytest.skip(str(error))
