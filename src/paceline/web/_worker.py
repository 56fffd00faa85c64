"""The process of a job: a task on stdin, progress and the result as JSON lines on stdout."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from paceline.errors import PacelineError
from paceline.web._tasks import TASKS


def main() -> int:
    """Do one task."""
    # What libraries print must not get between the lines.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    with contextlib.suppress(OSError, AttributeError):
        os.nice(5)  # the pages come first
    warnings.simplefilter("ignore")

    def send(**message: Any) -> None:
        print(json.dumps(message), file=answers, flush=True)

    task = json.load(sys.stdin)
    try:
        send(result=_run(task, lambda *progress: send(progress=progress)))
        return 0
    except PacelineError as error:
        send(error=" ".join(str(error).split()))
    except OSError as error:
        send(error=f"{error.strerror or error}: {Path(str(error.filename or '')).name}")
    except Exception as error:
        text = " ".join(str(error).split())[:200]
        send(error=f"{type(error).__name__}: {text}. This should not happen.")
    return 1


def _run(task: dict[str, Any], progress: Callable[..., None]) -> Any:
    kind = task.pop("kind")
    return TASKS[kind](progress=progress, **task)


if __name__ == "__main__":
    sys.exit(main())
