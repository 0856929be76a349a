"""Transcripts: dialogues that a source writes into one message, with the user's turns between tags."""

import re

CLOSING_TURN = re.compile(r"(?i)\b(?:one|a single) tool call\b")
"""Tells the last turn of a processed API-Bank dialogue: boiler-plate that asks for a single call, no request
of the user's. Look for it in the last turn only."""
