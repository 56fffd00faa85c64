"""How far a long benchmark is, on the standard error."""

from __future__ import annotations

import sys
import time
from datetime import datetime, timedelta


class Progress:
    """Counts work and says when it will be done at the pace so far.

    Parameters
    ----------
    total
        All the work, in any unit.
    """

    def __init__(self, total: float) -> None:
        self.total, self.finished, self.name = total, 0.0, ""
        self.start = time.perf_counter()

    def done(self, work: float) -> None:
        """Count work as done."""
        self.finished += work

    def say(self, label: str) -> None:
        """Say what comes next."""
        share = self.finished / self.total
        text = f"{100 * share:3.0f} %  {self.name}: {label}"
        if share > 0:
            left = (time.perf_counter() - self.start) * (1 - share) / share
            end = datetime.now() + timedelta(seconds=left)
            text += f"  (done about {end:%H:%M}, in {left / 60:.0f} min)"
        print(text, file=sys.stderr, flush=True)
