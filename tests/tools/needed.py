"""What a test cannot do without."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests import tools


def needed(name: str) -> Path:
    """The file of a program, as `tools.path`. Who lacks what builds it may skip the test, and is told so; CI may not."""
    try:
        return tools.path(name)
    except tools.ToolError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))
