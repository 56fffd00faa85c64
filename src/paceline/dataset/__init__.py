"""What was measured: observations, datasets, their files, and how tables are read."""

from __future__ import annotations

from paceline.dataset._basis import TimeBasis
from paceline.dataset._card import html_card
from paceline.dataset._cells import BLANK, level_name
from paceline.dataset._csv import read_csv, read_table
from paceline.dataset._dataset import Dataset
from paceline.dataset._extra_p import read_extra_p, write_extra_p
from paceline.dataset._features import Derivation, widen
from paceline.dataset._files import write_text
from paceline.dataset._load import load_dataset
from paceline.dataset._names import (
    batch_of,
    counts_all_devices,
    counts_what,
    model_degree,
    name_tokens,
)
from paceline.dataset._observation import Observation
from paceline.dataset._schema import (
    create_tables,
    insert_observations,
    open_store,
    read_meta,
    read_rows,
    transaction,
    write_meta,
    write_parameters,
)
from paceline.dataset._store import read_observations, read_store, save_store
from paceline.dataset._throughput import global_batch_columns

__all__ = [
    "BLANK",
    "Dataset",
    "Derivation",
    "Observation",
    "TimeBasis",
    "batch_of",
    "counts_all_devices",
    "counts_what",
    "create_tables",
    "global_batch_columns",
    "html_card",
    "insert_observations",
    "level_name",
    "load_dataset",
    "model_degree",
    "name_tokens",
    "open_store",
    "read_csv",
    "read_extra_p",
    "read_meta",
    "read_observations",
    "read_rows",
    "read_store",
    "read_table",
    "save_store",
    "transaction",
    "widen",
    "write_extra_p",
    "write_meta",
    "write_parameters",
    "write_text",
]
