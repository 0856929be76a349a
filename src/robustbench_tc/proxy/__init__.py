"""The doors: an agent that knows nothing of this package meets the faults of a plan.

A door perturbs as the builders do and speaks the wire as the harness does, so it stands above both rooms.

plan      what is to happen: the user's file
session   which case and which repeat a request belongs to
decide    which call meets which fault
scene     a case's clean and perturbed row, and which tool of the one is which of the other
chat      a request of chat completions rewritten, and its reply read back
stream    the same for a reply that comes in pieces
held      what the agent never saw of a conversation, for its next request
journal   what was changed, a line for each exchange
relay     the server on loopback
"""
