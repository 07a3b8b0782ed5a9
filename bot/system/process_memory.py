"""Protects this process, which holds secrets, from other processes of the same user."""

import ctypes

#: https://man7.org/linux/man-pages/man2/PR_SET_DUMPABLE.2const.html
_PR_SET_DUMPABLE = 4


def close_to_others() -> None:
    """Deny other processes access to this process's memory, environment and file descriptors.

    Also disables core dumps. Root keeps access, as does every process with CAP_SYS_PTRACE,
    CAP_PERFMON or CAP_SYS_ADMIN. Programs that this process starts are not affected.
    """
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
