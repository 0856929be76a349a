"""Importing this skips the importing module where verl is not installed."""

import pytest

pytest.importorskip("verl", reason="needs the training environment: make test-train")
