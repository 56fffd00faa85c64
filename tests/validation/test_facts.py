from __future__ import annotations

import tomllib
from decimal import Decimal
from importlib.resources import files

import pandas as pd
import pytest

from paceline.errors import InvalidInputError, SchemaError, UnknownNameError
from paceline.space import load_space
from paceline.validation import Facts, Figure, list_tables, load_facts, published_expression
from paceline.validation._facts import SCHEMA, SOURCES, parse_source, read_source
from paceline.validation._oracle_facts import SOURCES as ORACLE_SOURCES


def test_every_shipped_file_is_found_as_package_data_and_is_listed() -> None:
    folder = files("paceline.validation") / "published"
    shipped = {item.name for item in folder.iterdir() if item.name.endswith(".toml")}
    assert shipped == {f"{name}.toml" for name in (*SOURCES, *ORACLE_SOURCES)}


@pytest.mark.parametrize("name", SOURCES)
def test_every_file_names_its_schema_and_document(name: str) -> None:
    data = read_source(name)
    assert data["schema"] == SCHEMA
    assert "Kavarakuntla" in data["source"]["document"]
    assert all(entry.get("describes") or entry["same_as"] for entry in data["table"])


def test_all_asked_tables_are_there() -> None:
    assert list_tables() == [
        *("4.2", "4.3", "4.4", "4.5", "5.2", "5.3", "5.4", "SSCI I", "SSCI II"),
        *(f"journal {i}" for i in range(2, 7)),
        *("3.2", "3.3", "3.4", "3.5", "IUCC II", "IUCC III", "IUCC IV", "IUCC 10-18"),
    ]


@pytest.mark.parametrize(
    ("table", "framework", "name", "printed"),
    [
        ("4.2", "mxnet", "a[filters]", "554.87 ± 311.73"),
        ("4.2", "mxnet", "p[kernel_size]", "-4.10 ± 0.70"),
        ("4.2", "pytorch", "level[optimizer=adam]", "720.15 ± 123.99"),
        ("4.2", "pytorch", "q[n_devices]", "-1.029 ± 0.001"),
        ("4.2", "tensorflow", "level[dataset=cifar10]", "124.56 ± 108.01"),
        ("4.2", "tensorflow", "C", "1.930 ± 0.122"),
        ("4.3", "mxnet", "level[dataset=fashion-mnist]", "7.73 ± 0.36"),
        ("4.3", "mxnet", "q[device_batch]", "-0.87 ± 0.005"),
        ("4.3", "pytorch", "p[dropout]", "-5.00 ± 0.00"),
        ("4.3", "pytorch", "level[padding=valid]", "-0.57 ± 1.56"),
        ("4.3", "tensorflow", "p[stride]", "2.46 ± 0.10"),
        ("4.3", "tensorflow", "level[activation=tanh]", "1.99 ± 0.71"),
        ("5.2", "pytorch", "p[learning_rate]", "-0.04 ± 0.002"),
        ("5.2", "pytorch", "C", "75.87 ± 6.35"),
    ],
)
def test_constants_are_as_printed(
    facts: Facts, table: str, framework: str, name: str, printed: str
) -> None:
    assert str(facts.column(table, framework).figures[name]) == printed


@pytest.mark.parametrize(
    ("table", "row", "framework", "printed"),
    [
        ("4.4", "l1_mse", "tensorflow", "220.16"),
        ("4.4", "l2_rmse", "tensorflow", "14.20"),
        ("4.5", "n_devices", "mxnet", "-1.01"),
        ("5.3", "random_forest", "pytorch", "0.07"),
        ("5.4", "n_devices", "pytorch", "-0.94 ± 0.02"),
        ("SSCI I", "random_forest", "pytorch", "6.42"),
        ("SSCI II", "n_devices", "mxnet", "-0.99"),
        ("journal 4", "l2_mape_percent", "pytorch", "27"),
        ("journal 5", "differential_evolution_regularised", "pytorch", "14"),
        ("journal 5", "random_forest", "tensorflow", "0.7"),
        ("journal 6", "n_devices", "tensorflow", "-0.74"),
    ],
)
def test_cells_are_as_printed(
    facts: Facts, table: str, row: str, framework: str, printed: str
) -> None:
    assert str(facts.table(table).cells[row][framework]) == printed


def test_repeated_tables_are_not_copied_by_hand(facts: Facts) -> None:
    entries = {entry["id"]: entry for entry in read_source("journal")["table"]}
    assert entries["journal 2"] == {"id": "journal 2", "same_as": "4.2"}
    assert entries["journal 3"] == {"id": "journal 3", "same_as": "4.3"}
    assert facts.table("journal 2").columns == facts.table("4.2").columns
    assert facts.table("journal 3").columns == facts.table("4.3").columns


def test_no_two_columns_of_constants_are_the_same(facts: Facts) -> None:
    columns = [column.figures for _, _, column in facts.columns()]
    assert len(columns) == 7
    assert all(one != other for i, one in enumerate(columns) for other in columns[:i])


def test_an_unreadable_cell_is_text_and_never_a_number(facts: Facts) -> None:
    cell = facts.table("journal 5").cells["random_forest"]["mxnet"]
    assert cell.is_unreadable
    assert str(cell) == "3 or 5 % (unreadable)"
    with pytest.raises(InvalidInputError, match="must be readable, but got '3 or 5 %"):
        _ = cell.number


def test_only_one_cell_is_unreadable(facts: Facts) -> None:
    cells = [c for t in facts.tables.values() for row in t.cells.values() for c in row.values()]
    assert sum(cell.is_unreadable for cell in cells) == 1


def test_a_figure_without_a_number_must_say_that_it_is_unreadable() -> None:
    with pytest.raises(InvalidInputError, match="unless it is unreadable"):
        Figure(mean=None, text="?")


@pytest.mark.parametrize(("digits", "worth"), [("14.20", 0.01), ("-1.029", 0.001), ("27", 1.0)])
def test_the_last_digit_counts_as_printed(digits: str, worth: float) -> None:
    assert Figure(mean=Decimal(digits)).last_digit == worth


def test_every_contradiction_says_where_what_and_that_it_is_kept(facts: Facts) -> None:
    assert len({c.name for c in facts.contradictions}) == len(facts.contradictions) == 24
    for contradiction in facts.contradictions:
        assert contradiction.where and contradiction.what and contradiction.recorded
        assert contradiction.status == "kept as printed"


@pytest.mark.parametrize("table", ["4.2", "4.3", "journal 2", "journal 3"])
@pytest.mark.parametrize("framework", ["tensorflow", "mxnet", "pytorch"])
def test_a_published_expression_evaluates_on_its_space(table: str, framework: str) -> None:
    expression = published_expression(framework, table)
    space = load_space("table_4_1")
    assert set(expression.names) == set(space.names)
    assert (expression.evaluate(pd.DataFrame(space.sample(50))) > 0).all()


def test_a_published_expression_gives_the_time_worked_out_by_hand() -> None:
    row = {"filters": 16, "kernel_size": 3, "learning_rate": 0.1, "activation": "relu"}
    row |= {"optimizer": "sgd", "device_batch": 2, "n_devices": 3}
    bracket = 75.65 * 16**0.21 + 68.24 * 3**0.32 + 60.69 * 0.1**-0.04 + 15.56 + 30.92
    expected_s = bracket * 2**-0.03 * 3**-0.94 + 75.87
    expression = published_expression("pytorch", table="5.2")
    assert expression.evaluate(pd.DataFrame([row]))[0] == pytest.approx(expected_s, rel=1e-12)


def test_an_unknown_framework_or_table_is_named_with_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'tensorflow'"):
        published_expression("tensorflw")
    with pytest.raises(UnknownNameError, match=r"framework in table 5.2.*Known: pytorch"):
        published_expression("mxnet", table="5.2")
    with pytest.raises(UnknownNameError, match=r"table of constants is called '4\.4'"):
        published_expression("mxnet", table="4.4")
    with pytest.raises(UnknownNameError, match=r"published table is called '9\.9'"):
        load_facts().table("9.9")


def test_a_file_of_another_kind_is_refused() -> None:
    with pytest.raises(SchemaError, match=r"x\.toml: `schema` must be"):
        parse_source('schema = "paceline/space/1"\n', "x.toml")


def test_a_table_prints_as_one_line(facts: Facts) -> None:
    assert str(facts.table("4.5")) == "table 4.5: Power of the number of devices, per framework."


def test_the_files_are_plain_toml() -> None:
    for name in SOURCES:
        text = (files("paceline.validation") / "published" / f"{name}.toml").read_text("utf-8")
        assert tomllib.loads(text)["schema"] == SCHEMA
