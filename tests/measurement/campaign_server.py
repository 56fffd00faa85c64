"""Start campaigns in processes of their own, quickly: everything is imported once, then forked.

Reads one JSON request per line, answers with the process id, then with the exit status.
"""

import json
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

from tests.measurement.small_studies import simulated, small_study, step_time

from paceline.errors import PacelineError
from paceline.executors import Job
from paceline.measurement import Campaign, Progress, measure


def run_campaign(request: dict[str, Any]) -> int:
    """Run one campaign; every run that was told is logged after it was committed."""
    log = os.open(request["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    if request.get("unprivileged") and os.geteuid() == 0:
        os.setuid(65534)  # no permission binds root
    if request.get("file_bytes"):
        limit = request["file_bytes"]
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    def slow(job: Job) -> float:
        time.sleep(request.get("pause_s", 0.0))
        return step_time(job)

    def note(progress: Progress) -> None:
        os.write(log, f"{progress.last}\n".encode())

    executors = simulated(slow) if request.get("simulated", True) else None
    study = small_study(**request.get("study", {}))
    try:
        measure(study, request["path"], executors=executors, progress=note)
    except PacelineError as error:
        os.write(log, f"error: {error}\n".encode())
        return 2
    return 0


def hold(request: dict[str, Any]) -> int:
    """Own a file until killed."""
    with Campaign(small_study(), request["path"]):
        Path(request["log"]).write_text("held")
        time.sleep(600)
    return 0


def main() -> None:
    """Answer requests until the input ends."""
    for line in sys.stdin:
        request = json.loads(line)
        pid = os.fork()
        if pid == 0:
            os.setpgid(0, 0)
            status = 3
            try:
                status = (hold if request.get("hold") else run_campaign)(request)
            finally:
                os._exit(status)
        print(pid, flush=True)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
