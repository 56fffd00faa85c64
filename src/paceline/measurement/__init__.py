"""How trials are measured: studies, campaigns that survive anything, and their engines."""

from paceline.measurement._assignment import Assignment
from paceline.measurement._balance import Balance, BalanceTry, balance_shares
from paceline.measurement._calibration import calibrate
from paceline.measurement._calibration_describe import Calibration
from paceline.measurement._calibration_probes import NetworkProbe
from paceline.measurement._campaign import Campaign
from paceline.measurement._dry_run import DryRun, dry_run
from paceline.measurement._measure import measure
from paceline.measurement._noise import noise_floor
from paceline.measurement._phase_runs import PhaseRun, load_phase_runs
from paceline.measurement._progress import Progress
from paceline.measurement._protocol import Measured, combine_lives, pace, steady_steps
from paceline.measurement._replay import Replay, replay, replay_all
from paceline.measurement._rules import Limits, Protocol
from paceline.measurement._run_plan import PHASES_OF_PLAN, PlanRun, run_plan, scenario_of_plan
from paceline.measurement._run_store import dataset_of_run, scenarios_dataset, store_run
from paceline.measurement._study import Study
from paceline.measurement._study_file import list_studies, load_study

__all__ = [
    "PHASES_OF_PLAN",
    "Assignment",
    "Balance",
    "BalanceTry",
    "Calibration",
    "Campaign",
    "DryRun",
    "Limits",
    "Measured",
    "NetworkProbe",
    "PhaseRun",
    "PlanRun",
    "Progress",
    "Protocol",
    "Replay",
    "Study",
    "balance_shares",
    "calibrate",
    "combine_lives",
    "dataset_of_run",
    "dry_run",
    "list_studies",
    "load_phase_runs",
    "load_study",
    "measure",
    "noise_floor",
    "pace",
    "replay",
    "replay_all",
    "run_plan",
    "scenario_of_plan",
    "scenarios_dataset",
    "steady_steps",
    "store_run",
]
