"""Ends a server with the door that started it, also where the door was killed: `python watcher.py GROUP`.

A process of its own, which knows of the door by its standard input alone: that pipe ends with the door.
"""

import os
import signal
import sys
import time

if __name__ == "__main__":
    sys.stdin.buffer.read()
    try:
        os.killpg(int(sys.argv[1]), signal.SIGTERM)
        time.sleep(0.2)
        os.killpg(int(sys.argv[1]), signal.SIGKILL)
    except ProcessLookupError:
        pass  # it has ended by itself
