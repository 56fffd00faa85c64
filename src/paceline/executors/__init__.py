"""How a job is really run: on n workers, each timing itself, in any of five frameworks."""

from paceline.executors._base import BaseExecutor, Pool
from paceline.executors._environments import environments_folder, install_executor
from paceline.executors._frameworks import FrameworkExecutor, list_executors, load_executor
from paceline.executors._gathering import PoolLimits
from paceline.executors._job import PHASES, Delay, Job, RunRecord, WorkerRecord
from paceline.executors._pool import WorkerPool
from paceline.executors._simulated import SimulatedExecutor

__all__ = [
    "PHASES",
    "BaseExecutor",
    "Delay",
    "FrameworkExecutor",
    "Job",
    "Pool",
    "PoolLimits",
    "RunRecord",
    "SimulatedExecutor",
    "WorkerPool",
    "WorkerRecord",
    "environments_folder",
    "install_executor",
    "list_executors",
    "load_executor",
]
