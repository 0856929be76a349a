"""Replies as models write them: styles of calls, settings around them, and the check of the reader by both."""

from .bars import StyleCheck, check
from .settings import Setting, settings
from .styles import STYLES, Style

__all__ = ["STYLES", "Setting", "Style", "StyleCheck", "check", "settings"]
