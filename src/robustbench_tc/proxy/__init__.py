"""The doors: an agent that knows nothing of this package meets the faults of a plan.

A door perturbs as the builders do and speaks the wire as the harness does, so it stands above both rooms.
What comes in is an agent's traffic and a plan; what goes out is the same traffic, changed, and a journal that
scores as a run. Begin with `plan`, then `door` (models) and `mcp.calls` (tools).

plan         what is to happen, and the sessions that it happens to: which call meets which fault
scenes       a case's clean and perturbed row for a session, behind the defences; what a call meets
rewrite      the row's tools and words in place of the request's, and what a call of its tools means
chat         a conversation as the model has to see it, and a reply taken apart
dialects     requests, replies and streams of chat completions; `responses`, `anthropic` those of the others
door         the LLM door: one request until its reply has gone out
relay        the server that a door is, and the only one that it asks; `sse` cuts what comes into events
sessions     whose calls are counted together, over all doors of a process
mcp          the door between a client and an MCP server
journal      what was changed, a line for each exchange; `summary` counts it, `scored` makes a run of it
explain      what each call of a session will meet
ground       from logs to a plan
"""
