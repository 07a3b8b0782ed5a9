"""Tests of the parts of sandboxes that need no sandbox: filter, programs, control groups."""

import sys
from pathlib import Path

import pytest

from runtimes.isolation import seccomp
from runtimes.isolation.base import UNLIMITED, Limits
from runtimes.isolation.cgroups import ControlGroups
from runtimes.isolation.programs import program_files

LIMITS = Limits(memory_mb=100, processes=50, cpus=1.5)


@pytest.mark.parametrize("machine", seccomp.MACHINES)
def test_there_is_a_filter_for_each_known_machine(machine: str) -> None:
    assert len(seccomp.program(machine)) % 8 == 0


def test_an_unknown_machine_has_no_filter() -> None:
    with pytest.raises(ValueError, match="no seccomp filter for vax: only for x86_64"):
        seccomp.program("vax")


def script(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o700)
    return path


def test_a_program_of_the_system_needs_no_files() -> None:
    assert program_files(("sh", "-c", "true"), "/usr/bin:/bin", ()) == []
    assert program_files(("no-such-program",), "/usr/bin:/bin", ()) == []
    assert program_files((), "/usr/bin:/bin", ()) == []


def test_links_and_interpreters_are_followed_to_their_environments(tmp_path: Path) -> None:
    node = tmp_path / "node"
    script(node / "bin" / "node")
    text = "#!/usr/bin/env node\n"
    real = script(node / "lib" / "node_modules" / "@acme" / "agent" / "cli.js", text)
    link = tmp_path / "links" / "agent"
    link.parent.mkdir()
    link.symlink_to(real)
    found = program_files(("agent",), f"{link.parent}:{node / 'bin'}", ())
    assert set(found) == {link, node / "lib" / "node_modules", node}


def test_a_relative_link_leads_to_a_plain_path(tmp_path: Path) -> None:
    real = script(tmp_path / "lib" / "node_modules" / "agent" / "cli.js")
    link = tmp_path / "bin" / "agent"
    link.parent.mkdir()
    link.symlink_to(Path("..", "lib", "node_modules", "agent", "cli.js"))  # As npm makes it.
    assert set(program_files((str(link),), "", ())) == {tmp_path, real.parent.parent}


def test_an_environment_of_python_comes_with_its_interpreter() -> None:
    found = program_files((sys.executable,), "", ())
    assert Path(sys.prefix) in found
    system = Path(sys.base_prefix).is_relative_to("/usr")
    assert system or any(Path(sys.base_prefix) == folder.resolve() for folder in found)


def test_a_folder_with_other_things_is_never_shown_for_a_program(tmp_path: Path) -> None:
    local = tmp_path / ".local"
    (local / "lib" / "python3.11").mkdir(parents=True)
    (local / "lib" / "python3.11" / "os.py").touch()
    data = local / "share" / "mergewright"
    agent = script(local / "bin" / "agent")
    assert program_files((str(agent),), "", [data]) == [agent]


def test_files_named_in_the_command_are_shown(tmp_path: Path) -> None:
    named = script(tmp_path / "agent.py", "print(1)\n")
    assert program_files(("sh", str(named), "--flag"), "/usr/bin:/bin", ()) == [named]


def first_version(root: Path, *writable: str) -> ControlGroups:
    for name in writable:
        (root / name / "a").mkdir(parents=True)
        (root / name / "cgroup.procs").touch()
    own = root / "own"
    own.write_text("3:memory:/a\n2:cpu,cpuacct:/a\n1:pids:/a\n0::/\n")
    return ControlGroups(root, own)


def test_version_1_has_a_group_for_each_controller(tmp_path: Path) -> None:
    groups = first_version(tmp_path, "memory", "cpu")
    assert groups.limited == {"memory", "cpu"}
    assert groups.groups("app-1", LIMITS) == {
        f"{tmp_path}/memory/a/mergewright-app-1": {"memory.limit_in_bytes": "104857600"},
        f"{tmp_path}/cpu/a/mergewright-app-1": {
            "cpu.cfs_period_us": "100000",
            "cpu.cfs_quota_us": "150000",
        },
    }
    assert groups.groups("app-1", UNLIMITED) == {}


def test_version_2_has_one_group_where_the_controllers_are_delegated(tmp_path: Path) -> None:
    place = tmp_path / "user" / "bot.service"
    place.mkdir(parents=True)
    for folder in (tmp_path, tmp_path / "user"):
        (folder / "cgroup.procs").touch()
        (folder / "cgroup.subtree_control").write_text("cpu memory pids\n")
    (tmp_path / "cgroup.controllers").touch()
    (place / "cgroup.subtree_control").touch()
    own = tmp_path / "own"
    own.write_text("0::/user/bot.service\n")
    groups = ControlGroups(tmp_path, own)
    assert groups.limited == {"memory", "pids", "cpu"}
    assert groups.groups("app-1", LIMITS) == {
        f"{tmp_path}/user/mergewright-app-1": {
            "memory.max": "104857600",
            "pids.max": "50",
            "cpu.max": "150000 100000",
        }
    }


def service(root: Path, *, delegated: bool) -> tuple[ControlGroups, Path]:
    """A service of systemd whose processes are in a control group `bot` below its own group."""
    place = root / "system.slice" / "bot.service"
    (place / "bot").mkdir(parents=True)
    for folder, enabled in ((root, "cpu memory pids"), (place.parent, "cpu memory pids")):
        (folder / "cgroup.subtree_control").write_text(enabled)
    (root / "cgroup.controllers").touch()
    (place / "cgroup.controllers").write_text("cpu io memory pids\n")
    (place / "cgroup.subtree_control").touch()
    if delegated:
        (place / "cgroup.procs").touch()
        (place / "bot" / "cgroup.procs").touch()  # Its own controllers are none: it has processes.
    own = root / "own"
    own.write_text("0::/system.slice/bot.service/bot\n")
    return ControlGroups(root, own), place


def test_controllers_are_enabled_in_the_group_that_systemd_delegates(tmp_path: Path) -> None:
    groups, place = service(tmp_path, delegated=True)
    assert groups.limited == {"memory", "pids", "cpu"}
    assert (place / "cgroup.subtree_control").read_text() == "+memory +pids +cpu"
    assert list(groups.groups("app-1", LIMITS)) == [f"{place}/mergewright-app-1"]


def test_a_group_that_is_not_delegated_stays_as_it_is(tmp_path: Path) -> None:
    groups, place = service(tmp_path, delegated=False)
    assert groups.limited == frozenset()
    assert (place / "cgroup.subtree_control").read_text() == ""


def test_a_machine_without_control_groups_limits_nothing(tmp_path: Path) -> None:
    groups = ControlGroups(tmp_path, tmp_path / "missing")
    assert groups.limited == frozenset()
    assert groups.groups("app-1", LIMITS) == {}


def test_groups_of_ended_runs_are_removed(tmp_path: Path) -> None:
    groups = first_version(tmp_path, "memory")
    place = tmp_path / "memory" / "a"
    for name in ("mergewright-empty", "mergewright-used", "other"):
        (place / name).mkdir()
    (place / "mergewright-used" / "x").touch()
    groups.remove_empty()
    assert {one.name for one in place.iterdir()} == {"mergewright-used", "other"}
