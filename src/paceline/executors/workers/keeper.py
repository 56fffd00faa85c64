"""Kill groups of processes when their parent is gone, however it went.

Reads process groups from standard input, one per line, `-n` to forget n; at the end of input it
kills those that are left. A worker stuck in a collective cannot see that its parent died.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys


def main() -> None:
    """Keep the list until the parent is gone, then kill what is on it."""
    groups: set[int] = set()
    for line in sys.stdin:
        group = int(line)
        (groups.add if group > 0 else groups.discard)(abs(group))
    for group in groups:
        with contextlib.suppress(OSError):
            os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    main()
