"""What a client starts in the place of a server on standard input and output: it copies what the client says
to a door that is running, and back what that says. Run as a file, so that it needs nothing but a Python:

    python -I pipe.py http://127.0.0.1:8100/mcp/orders

One request carries the whole conversation, both ways at once; the door's token is in RBTC_TOKEN.
"""

import http.client
import os
import signal
import sys
import threading
from contextlib import suppress
from urllib.parse import urlsplit


def pass_on_input(connection: http.client.HTTPConnection) -> None:
    """Sends on what comes in, piece by piece, and that it has ended."""
    with suppress(OSError):  # of the other direction's connection: it says so
        while piece := os.read(0, 2**16):
            connection.send(b"%x\r\n%b\r\n" % (len(piece), piece))
        connection.send(b"0\r\n\r\n")


def main(address: str) -> None:
    """Until the door has said all, or the client has left."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port)
    try:
        connection.putrequest("POST", parts.path)
        connection.putheader("Transfer-Encoding", "chunked")
        connection.putheader("X-RBTC-Token", os.environ.get("RBTC_TOKEN", ""))
        connection.endheaders()
        threading.Thread(target=pass_on_input, args=(connection,), daemon=True).start()
        reply = connection.getresponse()
        if reply.status != 200:
            sys.exit(f"rbtc: {reply.read(10_000).decode(errors='replace')}")
        while piece := reply.read1(2**16):
            sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()
    except (OSError, http.client.HTTPException):
        sys.exit(f"rbtc: no door is at {address}, or it has ended: start `rbtc proxy` first")


if __name__ == "__main__":
    main(sys.argv[1])
