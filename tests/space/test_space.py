"""What a space knows and how it is written down."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.errors import InvalidInputError, SchemaError, UnknownNameError
from paceline.space import Parameter, Space

numbers = st.one_of(st.integers(-(2**60), 2**60), st.floats(allow_nan=False, allow_infinity=False))


@st.composite
def parameters(draw: st.DrawFn, name: str) -> Parameter:
    categorical = draw(st.booleans())
    values = st.text() if categorical else numbers
    return Parameter(
        name=name,
        role="intrinsic" if categorical else draw(st.sampled_from(["intrinsic", "extrinsic"])),
        kind="categorical" if categorical else "numeric",
        values=tuple(draw(st.lists(values, min_size=1, max_size=5, unique=True))),
        unit=draw(st.text(max_size=3)),
    )


@st.composite
def spaces(draw: st.DrawFn) -> Space:
    names = draw(st.lists(st.text(min_size=1), min_size=1, max_size=4, unique=True))
    return Space(
        name=draw(st.text(min_size=1)),
        parameters=tuple(draw(parameters(name)) for name in names),
        source=draw(st.text()),
    )


@pytest.fixture
def space() -> Space:
    return Space(
        name="small",
        parameters=(
            Parameter(name="filters", role="intrinsic", kind="numeric", values=(4, 8)),
            Parameter(
                name="optimizer", role="intrinsic", kind="categorical", values=("adam", "sgd")
            ),
            Parameter(name="n_devices", role="extrinsic", kind="numeric", values=(1, 2, 4)),
        ),
    )


@given(spaces())
def test_toml_gives_an_equal_space_back(space: Space) -> None:
    text = space.to_toml()
    assert Space.from_toml(text) == space
    assert text.startswith('schema = "paceline/space/1"\n')


@given(spaces())
def test_toml_keeps_whole_numbers_whole(space: Space) -> None:
    back = Space.from_toml(space.to_toml())
    for before, after in zip(space.parameters, back.parameters, strict=True):
        assert [type(value) for value in before.values] == [type(value) for value in after.values]


@given(spaces())
def test_plain_data_give_an_equal_space_back(space: Space) -> None:
    assert Space.from_dict(space.to_dict()) == space


def test_a_space_is_read_from_a_file_by_path_or_name(space: Space, tmp_path: Path) -> None:
    path = tmp_path / "small.toml"
    path.write_text("\ufeff" + space.to_toml(), encoding="utf-8")
    assert Space.from_toml(path) == Space.from_toml(str(path)) == space


def test_names_come_by_role_in_order(space: Space) -> None:
    assert space.names == ("filters", "optimizer", "n_devices")
    assert space.intrinsic == ("filters", "optimizer")
    assert space.extrinsic == ("n_devices",)
    assert space.n_combinations == 12
    assert space["n_devices"].values == (1, 2, 4)


def test_an_unknown_parameter_gets_the_nearest_name(space: Space) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'n_devices'"):
        space["n_device"]


def test_a_space_prints_on_one_line(space: Space) -> None:
    assert str(space) == "small: 2 intrinsic and 1 extrinsic parameters, 12 combinations"


def test_names_must_differ(space: Space) -> None:
    with pytest.raises(InvalidInputError, match="must differ, but got 'filters' twice"):
        Space(name="twice", parameters=(space["filters"], space["filters"]))


def test_a_space_needs_a_name_and_a_parameter(space: Space) -> None:
    with pytest.raises(InvalidInputError, match="at least one parameter"):
        Space(name="none", parameters=())
    with pytest.raises(InvalidInputError, match="`name` must be a text"):
        Space(name="", parameters=space.parameters)


def test_a_newer_schema_is_said_to_be_newer(space: Space) -> None:
    text = space.to_toml().replace("space/1", "space/2")
    with pytest.raises(SchemaError, match="made by a newer Paceline"):
        Space.from_toml(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a = 1\n", "`schema` must be"),
        ('schema = "paceline/dataset/1"\n', "`schema` must be"),
        ("a = = 1\n", "must be valid TOML"),
        ('schema = "paceline/space/1"\nname = "a"\nparameters = 3\n', "must be a list"),
    ],
)
def test_a_text_that_is_no_space_is_refused(text: str, words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        Space.from_toml(text)


def test_a_misspelt_field_gets_the_nearest_name(space: Space) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'source'"):
        Space.from_dict({**space.to_dict(), "sources": "x"})


def test_unreadable_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="must be readable"):
        Space.from_toml(tmp_path / "absent.toml")
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SchemaError, match="UTF-8"):
        Space.from_toml(binary)


def test_space_imports_no_heavy_package() -> None:
    code = (
        "import sys, paceline.space\n"
        "print([m for m in ('pandas', 'scipy', 'sklearn') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
