"""How a job is really run: on n workers, each timing itself, in any of five frameworks."""

from paceline.executors._base import BaseExecutor, Pool
from paceline.executors._command import CommandExecutor, CommandRecord
from paceline.executors._environments import environments_folder, install_executor
from paceline.executors._frameworks import FrameworkExecutor, list_executors, load_executor
from paceline.executors._gathering import PoolLimits
from paceline.executors._job import PHASES, Delay, Job, RunRecord, WorkerRecord, joint_steps
from paceline.executors._json_steps import JsonLinesSteps
from paceline.executors._pattern_steps import PatternSteps
from paceline.executors._plan_job import check_runnable, graph_of_plan, job_of_plan, ranks_of_plan
from paceline.executors._pool import WorkerPool
from paceline.executors._rendezvous import Rendezvous, parse_rendezvous
from paceline.executors._runnable import RUNNABLE, why_not_run
from paceline.executors._script import ScriptExecutor
from paceline.executors._simulated import SimulatedExecutor
from paceline.executors._trace import HookSteps, trace
from paceline.executors._watched import CommandLimits

__all__ = [
    "PHASES",
    "RUNNABLE",
    "BaseExecutor",
    "CommandExecutor",
    "CommandLimits",
    "CommandRecord",
    "Delay",
    "FrameworkExecutor",
    "HookSteps",
    "Job",
    "JsonLinesSteps",
    "PatternSteps",
    "Pool",
    "PoolLimits",
    "Rendezvous",
    "RunRecord",
    "ScriptExecutor",
    "SimulatedExecutor",
    "WorkerPool",
    "WorkerRecord",
    "check_runnable",
    "environments_folder",
    "graph_of_plan",
    "install_executor",
    "job_of_plan",
    "joint_steps",
    "list_executors",
    "load_executor",
    "parse_rendezvous",
    "ranks_of_plan",
    "trace",
    "why_not_run",
]
