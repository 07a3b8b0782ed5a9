"""The seccomp filter of sandboxes: system calls that would reach beyond the sandbox fail.

System calls that development tools need are allowed. The filter does not replace the namespaces: it
blocks features of the kernel that namespaces do not cover, and those that exploits often use. It is
assembled here, because a filter is only a list of numbers, and the bindings of libseccomp on PyPI
(pyseccomp) have had no release since 2021 and need a system library.
https://docs.kernel.org/userspace-api/seccomp_filter.html
"""

import errno
import platform
import socket
import struct
from collections.abc import Iterable, Mapping
from typing import NamedTuple


class _Machine(NamedTuple):
    """A processor architecture; `column` is its index in the rows of `DENIED` and `MISSING`."""

    audit: int  #: AUDIT_ARCH_* of linux/audit.h.
    column: int


#: Architectures by the machine's name, as `uname -m` prints it.
MACHINES: Mapping[str, _Machine] = {
    "x86_64": _Machine(0xC000003E, 0),
    "aarch64": _Machine(0xC00000B7, 1),
}

#: System calls refused with EPERM, with their numbers on x86_64 and on aarch64 (asm/unistd.h). None
#: means that the architecture has no such call.
DENIED: Mapping[str, tuple[int, int | None]] = {
    # Other processes' memory and descriptors.
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    # Keyrings, which no namespace keeps apart.
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    # Namespaces and mounts.
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    # Parts of the kernel whose bugs are often exploited.
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    # The machine itself.
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "syslog": (103, 116),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "iopl": (172, None),
    "ioperm": (173, None),
}

#: System calls refused with ENOSYS, so that programs use older calls, whose arguments a filter can
#: read.
MISSING: Mapping[str, tuple[int, int]] = {
    "clone3": (435, 435),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
}

_CLONE, _UNSHARE, _IOCTL, _SOCKET = (56, 220), (272, 97), (16, 29), (41, 198)
#: CLONE_NEW* of linux/sched.h: NS, CGROUP, UTS, IPC, USER, PID, NET.
_NAMESPACES = 0x7E020000
_NEW_TIME = 0x80  #: CLONE_NEWTIME, for unshare only: in clone it is part of the signal.
#: Refused requests of ioctl_tty(2), which type into the terminal, reach the console, or change the
#: line discipline.
TERMINAL: Mapping[str, int] = {
    "TIOCSTI": 0x5412,
    "TIOCLINUX": 0x541C,
    "TIOCCONS": 0x541D,
    "TIOCSETD": 0x5423,
}
#: The allowed families of sockets. Others, such as AF_VSOCK, reach beyond the network namespace or
#: into rarely used code of the kernel.
_FAMILIES = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK)

# https://docs.kernel.org/networking/filter.html; struct seccomp_data in linux/seccomp.h.
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCH = 0, 4
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_X32 = 0x40000000  #: Calls of the x32 ABI of x86_64 have this bit.


def program(machine: str = "") -> bytes:
    """Return the filter, as BPF, for an architecture of `MACHINES`, by default this machine's.

    Raises `ValueError` for any other architecture.
    """
    machine = machine or platform.machine()
    if machine not in MACHINES:
        raise ValueError(f"no seccomp filter for {machine}: only for {', '.join(MACHINES)}")
    audit, column = MACHINES[machine]
    code = [_load(_ARCH), *_unless_equal(audit, _KILL), _load(_NUMBER)]
    if column == 0:
        code += [_jump(_AT_LEAST, _X32, 0, 1), _return(_ERRNO | errno.ENOSYS)]
    for table, error in ((DENIED, errno.EPERM), (MISSING, errno.ENOSYS)):
        for numbers in table.values():
            if (number := numbers[column]) is not None:
                code += _call(number, [_return(_ERRNO | error)])
    code += _call(_CLONE[column], _refuse_bits(_NAMESPACES))
    code += _call(_UNSHARE[column], _refuse_bits(_NAMESPACES | _NEW_TIME))
    code += _call(_IOCTL[column], _refuse_values(1, TERMINAL.values()))
    code += _call(_SOCKET[column], _allow_values(0, map(int, _FAMILIES), errno.EAFNOSUPPORT))
    return b"".join((*code, _return(_ALLOW)))


def _call(number: int, then: list[bytes]) -> list[bytes]:
    """Return code that runs `then` for the system call `number`. `then` must end with a return."""
    return [_jump(_EQUAL, number, 0, len(then)), *then]


def _refuse_bits(bits: int) -> list[bytes]:
    """Return code that refuses a call whose first argument has any of these bits."""
    refuse = [_jump(_ANY_BIT, bits, 0, 1), _return(_ERRNO | errno.EPERM)]
    return [_load(_argument(0)), *refuse, _return(_ALLOW)]


def _refuse_values(place: int, values: Iterable[int]) -> list[bytes]:
    found = [_load(_argument(place))]
    for value in values:
        found += [_jump(_EQUAL, value, 0, 1), _return(_ERRNO | errno.EPERM)]
    return [*found, _return(_ALLOW)]


def _allow_values(place: int, values: Iterable[int], error: int) -> list[bytes]:
    found = [_load(_argument(place))]
    for value in values:
        found += [_jump(_EQUAL, value, 0, 1), _return(_ALLOW)]
    return [*found, _return(_ERRNO | error)]


def _unless_equal(value: int, action: int) -> list[bytes]:
    return [_jump(_EQUAL, value, 1, 0), _return(action)]


def _argument(place: int) -> int:
    """Return the offset of an argument's lower half; the filtered calls ignore the upper half."""
    return 16 + 8 * place


def _load(offset: int) -> bytes:
    return _instruction(_LOAD, 0, 0, offset)


def _jump(test: int, value: int, if_true: int, if_false: int) -> bytes:
    return _instruction(test, if_true, if_false, value)


def _return(value: int) -> bytes:
    return _instruction(_RETURN, 0, 0, value)


def _instruction(code: int, if_true: int, if_false: int, value: int) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)
