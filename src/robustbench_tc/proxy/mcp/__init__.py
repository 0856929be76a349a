"""The MCP door: between a client and a server, message by message.

Every message passes as it came, but the lists of tools and the calls that the plan is about, so that nothing
of a protocol revision, older or newer, has to be known here (2025-11-25 and 2026-07-28 are tested).

    wire       messages, and the tools as the client is shown them, and back
    calls      one session: which call meets what, and its journal
    stdio      between a client's pipe and a child process
    http       between a port of this machine and a server's address
    servers    a door for every server of a client's configuration, all in one process
    pipe       what a client starts in the place of a server: a file that needs nothing but Python
"""
