"""How the verbs say how far they are."""

from collections.abc import Callable
from typing import TypeAlias

Progress: TypeAlias = Callable[[str], None]
"""Gets one short line at a time about what is being worked on."""
