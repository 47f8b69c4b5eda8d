"""Robot descriptions from the field: package names, paths beside the URDF, xacro, tips."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.config.own_arms import cell, end, urdf, write_mesh
from typer.testing import CliRunner

from understudy.app.build import build_cell
from understudy.cli import app
from understudy.config import CellConfig, load_config
from understudy.config.model_files import PATH_VARIABLE, add_package_paths
from understudy.errors import ConfigError
from understudy.space.kinematics.chain import chain
from understudy.space.model.environment import meshes_of
from understudy.space.model.urdf import read
from understudy.units import DEG


@pytest.fixture(autouse=True)
def no_package_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AMENT_PREFIX_PATH", raising=False)
    monkeypatch.setenv(PATH_VARIABLE, "")


def loaded_meshes(config: CellConfig) -> int:
    """Builds the cell and returns the number of triangles of its arm's meshes."""
    build_cell(config)
    model = config.robots["arm"].config.model
    bodies = chain(read(config.read_file(model).decode())).bodies
    meshes = meshes_of([s for body in bodies for s in body.collision], config.read_file)
    return sum(len(mesh.triangles) for mesh in meshes.values())


def package(folder: Path, name: str = "own_support", mesh: str = "meshes/link.stl") -> Path:
    """A package with a URDF and its mesh; returns the URDF."""
    write_mesh(folder / mesh)
    file = folder / "urdf" / "own.urdf"
    file.parent.mkdir(parents=True)
    file.write_text(urdf(mesh=f"package://{name}/{mesh}"))
    return file


def test_a_package_is_found_above_the_urdf(tmp_path: Path) -> None:
    package(tmp_path / "arms" / "own_support")
    config = load_config(str(cell(tmp_path, "model: arms/own_support/urdf/own.urdf")))
    assert loaded_meshes(config) == 12


def test_a_package_is_found_beside_the_package_of_the_urdf(tmp_path: Path) -> None:
    file = package(tmp_path / "own_support", "own_meshes", "unused.stl")
    write_mesh(tmp_path / "own_meshes" / "unused.stl")
    assert loaded_meshes(load_config(str(cell(tmp_path, f"model: {file}")))) == 12


def test_a_folder_of_another_name_is_a_package_by_its_package_xml(tmp_path: Path) -> None:
    package(tmp_path / "checkout-2.1")
    manifest = tmp_path / "checkout-2.1" / "package.xml"
    manifest.write_text("<package><name>own_support</name></package>")
    config = load_config(str(cell(tmp_path, "model: checkout-2.1/urdf/own.urdf")))
    assert loaded_meshes(config) == 12


def test_a_package_is_found_on_the_package_path(tmp_path: Path) -> None:
    write_mesh(tmp_path / "ws" / "src" / "vendor" / "own_support" / "meshes" / "link.stl")
    folder = tmp_path / "a" / "b" / "c" / "d" / "e" / "f" / "g"
    folder.mkdir(parents=True)
    (folder / "own.urdf").write_text(urdf(mesh="package://own_support/meshes/link.stl"))
    config = load_config(str(cell(folder, "model: own.urdf")))
    with pytest.raises(ConfigError, match="the package 'own_support' was not found") as caught:
        loaded_meshes(config)
    assert "--package-path FOLDER" in str(caught.value)
    add_package_paths([tmp_path / "ws"])
    assert loaded_meshes(config) == 12


def test_the_command_line_has_a_package_path(tmp_path: Path) -> None:
    write_mesh(tmp_path / "ws" / "own_support" / "link.stl")
    folder = tmp_path / "a" / "b" / "c" / "d" / "e" / "f" / "g"
    folder.mkdir(parents=True)
    (folder / "own.urdf").write_text(urdf(mesh="package://own_support/link.stl"))
    file = str(cell(folder, "model: own.urdf"))
    without = CliRunner().invoke(app, ["check", file])
    assert isinstance(without.exception, ConfigError)
    done = CliRunner().invoke(app, ["check", file, "--package-path", str(tmp_path / "ws")])
    assert done.exit_code == 0, done.output
    assert os.environ[PATH_VARIABLE] == str(tmp_path / "ws")


def test_a_mesh_is_found_beside_its_urdf_and_not_beside_the_cell(tmp_path: Path) -> None:
    write_mesh(tmp_path / "arms" / "link.stl")
    (tmp_path / "arms" / "own.urdf").write_text(urdf())
    config = load_config(str(cell(tmp_path, "model: arms/own.urdf")))
    assert loaded_meshes(config) == 12


def test_a_mesh_is_found_by_a_file_address(tmp_path: Path) -> None:
    mesh = write_mesh(tmp_path / "some where" / "link.stl")
    (tmp_path / "own.urdf").write_text(urdf(mesh=f"file://{str(mesh).replace(' ', '%20')}"))
    assert loaded_meshes(load_config(str(cell(tmp_path, "model: own.urdf")))) == 12


def test_a_missing_mesh_is_named(tmp_path: Path) -> None:
    (tmp_path / "own.urdf").write_text(urdf(mesh="nowhere.stl"))
    with pytest.raises(ConfigError, match=r"mesh: cannot be read: No such file.*nowhere\.stl"):
        build_cell(load_config(str(cell(tmp_path, "model: own.urdf"))))


@pytest.mark.parametrize("ending", ["stl", "obj", "dae", "glb", "ply", "STL"])
def test_formats_of_meshes(tmp_path: Path, ending: str) -> None:
    written = write_mesh(tmp_path / f"link.{ending.lower()}")
    written.rename(tmp_path / f"link.{ending}")
    (tmp_path / "own.urdf").write_text(urdf(mesh=f"link.{ending}"))
    assert loaded_meshes(load_config(str(cell(tmp_path, "model: own.urdf")))) == 12


# ── xacro ───────────────────────────────────────────────────────────────────────────────────────

XACRO = "xmlns:xacro='http://www.ros.org/wiki/xacro'"


def write_xacro(folder: Path) -> None:
    """A xacro file that takes its links from another package, and has an argument."""
    macro = urdf(mesh="package://own_support/link.stl", more=end("l6", "tool0"))
    body = macro.removeprefix("<robot name='own'>").removesuffix("</robot>")
    body = body.replace("<origin xyz='0 0 0.2'/>", "<origin xyz='0 0 ${length}'/>", 1)
    support = folder / "own_support"
    support.mkdir()
    (support / "arm.xacro").write_text(
        f"<robot {XACRO}><xacro:macro name='arm' params='length'>{body}</xacro:macro></robot>"
    )
    write_mesh(support / "link.stl")
    (folder / "own.urdf.xacro").write_text(
        f"<robot name='own' {XACRO}><xacro:arg name='length' default='0.2'/>"
        "<xacro:include filename='$(find own_support)/arm.xacro'/>"
        "<xacro:arm length='$(arg length)'/></robot>"
    )


@pytest.mark.parametrize(("arguments", "height"), [("", 1.2), (" length:=0.5", 1.5)])
def test_xacro_with_arguments(tmp_path: Path, arguments: str, height: float) -> None:
    write_xacro(tmp_path)
    config = load_config(str(cell(tmp_path, f"model: 'own.urdf.xacro{arguments}'")))
    assert loaded_meshes(config) == 12
    model = config.robots["arm"].config.model
    arm = chain(read(config.read_file(model).decode()))
    np.testing.assert_allclose(arm.flange(np.zeros(6))[2, 3], height)


def test_a_xacro_file_that_cannot_be_expanded_says_why(tmp_path: Path) -> None:
    (tmp_path / "own.xacro").write_text(f"<robot {XACRO}><link name='${{nothing}}'/></robot>")
    with pytest.raises(ConfigError, match=r"xacro cannot expand this file: .*nothing"):
        build_cell(load_config(str(cell(tmp_path, "model: own.xacro"))))


def test_without_xacro_the_message_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_xacro(tmp_path)
    monkeypatch.setattr("understudy.config.model_files.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"needs understudy\[mesh\]: .*install xacro;"):
        build_cell(load_config(str(cell(tmp_path, "model: own.urdf.xacro"))))


# ── tips and joint counts ───────────────────────────────────────────────────────────────────────


def test_a_cell_file_names_one_of_several_tips(tmp_path: Path) -> None:
    write_mesh(tmp_path / "link.stl")
    (tmp_path / "own.urdf").write_text(urdf(more=end("l6", "left") + end("l6", "right")))
    with pytest.raises(ConfigError, match=r"tip: several links could be the tip.*left, right"):
        build_cell(load_config(str(cell(tmp_path, "model: own.urdf"))))
    build_cell(load_config(str(cell(tmp_path, "model: own.urdf, tip: left"))))
    with pytest.raises(ConfigError, match="no such link"):
        build_cell(load_config(str(cell(tmp_path, "model: own.urdf, tip: middle"))))


@pytest.mark.parametrize("joints", [4, 5, 7])
def test_another_number_of_joints_is_refused_with_a_way_out(tmp_path: Path, joints: int) -> None:
    write_mesh(tmp_path / "link.stl")
    (tmp_path / "own.urdf").write_text(urdf(joints))
    with pytest.raises(ConfigError, match=rf"{joints} joints move .* drives six") as caught:
        build_cell(load_config(str(cell(tmp_path, "model: own.urdf"))))
    assert ("fixed_joints_deg" in str(caught.value)) == (joints > 6)


def test_seven_joints_with_one_fixed_are_driven(tmp_path: Path) -> None:
    write_mesh(tmp_path / "link.stl")
    (tmp_path / "own.urdf").write_text(urdf(7))
    keys = "model: own.urdf, fixed_joints_deg: {j3: 30}"
    built = build_cell(load_config(str(cell(tmp_path, keys))))
    assert built.components["arm"] is not None
    with pytest.raises(ConfigError, match="unknown moving joint"):
        build_cell(load_config(str(cell(tmp_path, "model: own.urdf, fixed_joints_deg: {x: 0}"))))


def test_limits_of_the_cell_file_replace_those_of_the_description(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_mesh(tmp_path / "link.stl")
    (tmp_path / "own.urdf").write_text(urdf().replace("velocity='2'", "velocity='0'"))
    plain: Any = build_cell(load_config(str(cell(tmp_path, "model: own.urdf")))).components["arm"]
    np.testing.assert_allclose(plain.arm.movers[0].chain.velocity, np.pi)
    assert "limits: {velocity_deg_s" in caplog.text
    caplog.clear()
    keys = "model: own.urdf, limits: {velocity_deg_s: [90, 90, 90, 90, 90, 45], effort: ignore}"
    given: Any = build_cell(load_config(str(cell(tmp_path, keys)))).components["arm"]
    chain = given.arm.movers[0].chain
    np.testing.assert_allclose(chain.velocity / DEG, [90.0] * 5 + [45.0])
    assert np.isinf(chain.effort).all()
    assert caplog.text == ""
    wrong = "model: own.urdf, limits: {effort: [1, 2]}"
    with pytest.raises(ConfigError, match=r"limits\.effort: wrong number of values"):
        build_cell(load_config(str(cell(tmp_path, wrong))))


def test_an_arm_whose_zero_is_outside_its_limits_starts_in_the_middle(tmp_path: Path) -> None:
    write_mesh(tmp_path / "link.stl")
    text = urdf().replace("lower='-1.5' upper='1.5'", "lower='-1.5' upper='-0.5'", 1)
    (tmp_path / "own.urdf").write_text(text)
    built: Any = build_cell(load_config(str(cell(tmp_path, "model: own.urdf")))).components["arm"]
    np.testing.assert_allclose(built.arm.start, [-1.0, 0, 0, 0, 0, 0])
