"""The doors: an agent that knows nothing of this package meets the faults of a plan.

A door perturbs as the builders do and speaks the wire as the harness does, so it stands above both rooms.

plan         what is to happen: the user's file
session      which case and which repeat a request belongs to
decide       which call meets which fault
scenes       a case's clean and perturbed row (`scene`) for a session
offer, head  the row's tools and words in place of the request's
chat         a conversation as the model has to see it, and a reply taken apart
held         what the agent never saw of a conversation, for its next request
dialect      what chat completions and the Responses API (`responses`) write differently
stream       replies in pieces; `sse` cuts and writes events
exchange     one request until its reply has gone out
journal      what was changed, a line for each exchange; `predictions` reads it
relay, door  the server on loopback, without and with a plan; `upstream` is the only one that it asks
"""
