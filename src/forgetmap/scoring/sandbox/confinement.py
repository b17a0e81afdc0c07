"""Restrictions of a program: namespaces, limits and a minimal file system.

Per template: a read-only root with only the libraries of Python, and a network without devices. Per
program: separate process ids, shared memory and a small folder in memory, an unused user id, no
capabilities, limits, and a filter of system calls.
"""

from __future__ import annotations

import errno
import os
import resource
import signal
import struct
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path

from forgetmap.scoring.sandbox import MAX_TASKS, WORK, kernel

_WORK_BYTES = 16 * 2**20
_WORK_FILES = 2_000
_OPEN_FILES = 64
_NO_CORE = 1
"""Size of a core dump in bytes; not 0, for which a system that pipes dumps would still do so."""
_DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
_FIRST_FREE_USER = 2_000_000_000
_NOBODY = 65_534


def enclose(root: str, mounts: Iterable[tuple[str, str]]) -> bool:
    """Confine this process to a root of its own, without network.

    Args:
        root: an empty folder; mounts on it are visible to this process only.
        mounts: sources and targets of the visible files and folders.

    Returns:
        Whether this process is root, so that programs must change their user.
    """
    _call_filter()
    was_root = os.geteuid() == 0
    if not was_root:
        _become_root_of_nothing()
    kernel.unshare(kernel.NEWNS, "mount namespace")
    kernel.unshare(kernel.NEWNET, "network namespace")
    kernel.unshare(kernel.NEWUTS, "host name namespace")
    kernel.keep_mounts_private()
    kernel.mount_memory(root, "size=1m,mode=755")
    devices = [(device, device) for device in _DEVICES if Path(device).exists()]
    for source, target in (*mounts, *devices):
        _show(source, root + target)
    Path(root + WORK).mkdir()
    kernel.make_read_only(root)
    with suppress(OSError):
        # If memory runs out, programs are killed first.
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    kernel.change_root(root)
    kernel.unshare(kernel.NEWPID, "process namespace")
    return was_root


def _become_root_of_nothing() -> None:
    """Get all capabilities in a user namespace that owns nothing."""
    user, group = os.geteuid(), os.getegid()
    kernel.unshare(kernel.NEWUSER, "user namespace")
    Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
    Path("/proc/self/uid_map").write_text(f"{_NOBODY} {user} 1", encoding="ascii")
    Path("/proc/self/gid_map").write_text(f"{_NOBODY} {group} 1", encoding="ascii")


def _show(source: str, target: str) -> None:
    """Make a file or folder visible; links stay links, so that they lead to visible targets."""
    path = Path(target)
    path.parent.mkdir(parents=True, exist_ok=True)
    if Path(source).is_symlink():
        path.symlink_to(Path(source).readlink())
        return
    if Path(source).is_dir():
        path.mkdir(exist_ok=True)
    else:
        path.touch()
    kernel.bind(source, target)


def separate() -> None:
    """Separate process ids of the next child, shared memory, and an empty folder to work in."""
    namespaces = kernel.NEWPID | kernel.NEWNS | kernel.NEWIPC
    kernel.unshare(namespaces, "process, mount and shared-memory namespace")
    kernel.mount_memory(
        WORK, f"size={_WORK_BYTES},nr_inodes={_WORK_FILES},mode=1777", kernel.NOEXEC
    )


def restrain(*, user: int | None, seconds: int, megabytes: int, others: int | None = None) -> None:
    """Give up all privileges permanently, and set limits.

    Args:
        user: a unique number, if this process is root.
        seconds: limit on processor time.
        megabytes: limit on the memory of each process.
        others: number of other tasks of the same user; None to count tasks separately.
    """
    os.chdir(WORK)
    if user is not None:
        _become(user)
    if others is None:
        _count_tasks_apart(is_root=user is not None)
    for kind, most in (
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_AS, megabytes * 2**20),
        (resource.RLIMIT_FSIZE, _WORK_BYTES),
        (resource.RLIMIT_NOFILE, _OPEN_FILES),
        (resource.RLIMIT_CORE, _NO_CORE),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_NPROC, MAX_TASKS + (others or 0)),
        (resource.RLIMIT_RTPRIO, 0),
        (resource.RLIMIT_NICE, 0),
    ):
        resource.setrlimit(kind, (most, most))
    kernel.give_up_capabilities()
    kernel.forbid_dumps()
    kernel.die_with_parent(signal.SIGKILL)
    kernel.filter_calls(_call_filter())


def _become(user: int) -> None:
    """Change to an unused user id, else to that of nobody."""
    os.setgroups([])
    for number in (_FIRST_FREE_USER + user, _NOBODY):
        try:
            os.setresgid(number, number, number)
            os.setresuid(number, number, number)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
        else:
            return


def _count_tasks_apart(*, is_root: bool) -> None:
    """Enter a user namespace of its own, since tasks are counted by user and user namespace.

    Without it, tasks of other programs and of the templates count as well: an ordinary user could
    start two threads less than root.
    """
    try:
        kernel.unshare(kernel.NEWUSER, "user namespace")
    except OSError:
        if not is_root:
            raise


@cache
def _call_filter() -> bytes:
    """Return a filter that denies listed calls, sockets beyond this machine and new namespaces."""
    load, equal, at_least, any_bit, end = 0x20, 0x15, 0x35, 0x45, 0x06
    allow, kill, fail = 0x7FFF0000, 0x80000000, 0x00050000
    number, processor, first_argument = 0, 4, 16
    calls = kernel.calls()
    denied = [
        step
        for call in calls.denied.values()
        for step in ((equal, 0, 1, call), (end, 0, 0, fail | errno.EPERM))
    ]
    steps = [
        (load, 0, 0, processor),
        (equal, 1, 0, calls.audit),
        (end, 0, 0, kill),
        (load, 0, 0, number),
        (at_least, 0, 1, 0x40000000),
        (end, 0, 0, fail | errno.EPERM),
        *denied,
        (equal, 0, 1, calls.clone3),
        (end, 0, 0, fail | errno.ENOSYS),
        (equal, 0, 4, calls.clone),
        (load, 0, 0, first_argument),
        (any_bit, 0, 1, kernel.NEW_ANY),
        (end, 0, 0, fail | errno.EPERM),
        (end, 0, 0, allow),
        (equal, 0, 4, calls.socket),
        (load, 0, 0, first_argument),
        (equal, 1, 0, 1),
        (end, 0, 0, fail | errno.EAFNOSUPPORT),
        (end, 0, 0, allow),
        (end, 0, 0, allow),
    ]
    return b"".join(struct.pack("HBBI", *step) for step in steps)
