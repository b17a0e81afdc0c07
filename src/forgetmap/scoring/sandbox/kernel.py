"""Linux system calls that Python lacks; each raises OSError."""

from __future__ import annotations

import ctypes
import os
import platform
from dataclasses import dataclass

NEWNS, NEWIPC, NEWUSER, NEWPID, NEWNET, NEWUTS = (
    0x00020000, 0x08000000, 0x10000000, 0x20000000, 0x40000000, 0x04000000,
)  # fmt: skip
NEW_ANY = NEWNS | NEWIPC | NEWUSER | NEWPID | NEWNET | NEWUTS | 0x02000000

NOSUID, NODEV, NOEXEC = 0x2, 0x4, 0x8
_BIND, _RECURSIVE, _PRIVATE = 0x1000, 0x4000, 0x40000
_DETACH = 2

_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_ATTR_RDONLY, _ATTR_NOSUID = 0x1, 0x2

_SET_PDEATHSIG, _SET_DUMPABLE, _SET_SECCOMP, _CAPBSET_DROP, _SET_NO_NEW_PRIVS = 1, 4, 22, 24, 38
_SECCOMP_FILTER = 2
_CAPABILITY_VERSION = 0x20080522
_MAX_CAPABILITIES = 64


_PROCESSORS = ("x86_64", "aarch64")
_AUDIT = (0xC000003E, 0xC00000B7)
_CLONE, _CLONE3, _SOCKET = (56, 220), (435, 435), (41, 198)
_DENIED = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "memfd_create": (319, 279), "shmget": (29, 194), "semget": (64, 190), "msgget": (68, 186),
    "mq_open": (240, 180), "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40),
    "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "keyctl": (250, 219),
    "add_key": (248, 217), "request_key": (249, 218), "bpf": (321, 280),
    "perf_event_open": (298, 241), "userfaultfd": (323, 282), "kcmp": (312, 272),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431),
    "fsmount": (432, 432), "fspick": (433, 433), "pidfd_getfd": (438, 438),
    "mount_setattr": (442, 442), "memfd_secret": (447, 447),
}  # fmt: skip
"""Numbers of calls that programs do not need, by processor."""


@dataclass(frozen=True, slots=True)
class SystemCalls:
    """Numbers of system calls on this processor."""

    audit: int
    clone: int
    clone3: int
    socket: int
    denied: dict[str, int]


def calls() -> SystemCalls:
    """Return the numbers of system calls on this processor."""
    name = platform.machine()
    if name not in _PROCESSORS:
        raise OSError(0, f"no list of system calls for {name} processors")
    index = _PROCESSORS.index(name)
    denied = {call: numbers[index] for call, numbers in _DENIED.items()}
    return SystemCalls(_AUDIT[index], _CLONE[index], _CLONE3[index], _SOCKET[index], denied)


_libc = ctypes.CDLL(None, use_errno=True)
# Declared once, since converting each argument of each call takes longer than the calls.
_libc.prctl.argtypes = (ctypes.c_int, *(ctypes.c_ulong,) * 4)


def _check(result: int, action: str) -> None:
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"{action}: {os.strerror(number)}")


def unshare(flags: int, what: str) -> None:
    """Enter new namespaces, named by `flags`; `what` names them in the error."""
    _check(_libc.unshare(ctypes.c_int(flags)), f"no new {what}")


def _mount(source: str | None, target: str, kind: str | None, flags: int, data: str = "") -> None:
    def text(value: str | None) -> bytes | None:
        return None if value is None else os.fsencode(value)

    result = _libc.mount(
        text(source), text(target), text(kind), ctypes.c_ulong(flags), text(data) or None
    )
    _check(result, f"mounting {target}")


def keep_mounts_private() -> None:
    """Hide all further mounts from other namespaces."""
    _mount(None, "/", None, _RECURSIVE | _PRIVATE)


def mount_memory(target: str, options: str, flags: int = 0) -> None:
    """Mount an empty file system in memory."""
    _mount("tmpfs", target, "tmpfs", NOSUID | NODEV | flags, options)


def bind(source: str, target: str) -> None:
    """Mount a file or folder at a second place."""
    _mount(source, target, None, _BIND | _RECURSIVE)


def make_read_only(target: str) -> None:
    """Make a mount and all mounts below it read-only."""
    attributes = (ctypes.c_uint64 * 4)(_ATTR_RDONLY | _ATTR_NOSUID, 0, 0, 0)
    result = _libc.syscall(
        ctypes.c_long(calls().denied["mount_setattr"]),
        ctypes.c_int(_AT_FDCWD),
        os.fsencode(target),
        ctypes.c_uint(_AT_RECURSIVE),
        attributes,
        ctypes.c_size_t(ctypes.sizeof(attributes)),
    )
    _check(result, f"making {target} read-only")


def change_root(folder: str) -> None:
    """Make a mount the root, and detach the old one."""
    os.chdir(folder)
    result = _libc.syscall(ctypes.c_long(calls().denied["pivot_root"]), b".", b".")
    _check(result, "changing the root")
    _check(_libc.umount2(b".", ctypes.c_int(_DETACH)), "letting go of the old root")
    os.chdir("/")


def _prctl(option: int, first: int = 0, second: int = 0) -> int:
    return int(_libc.prctl(option, first, second, 0, 0))


def die_with_parent(signal: int) -> None:
    """Request this signal for when the parent ends."""
    _check(_prctl(_SET_PDEATHSIG, signal), "tying to the parent")


def forbid_dumps() -> None:
    """Disable core dumps of this process."""
    _check(_prctl(_SET_DUMPABLE, 0), "forbidding dumps")


def give_up_capabilities() -> None:
    """Give up capabilities permanently, for this process and all its children."""
    for capability in range(_MAX_CAPABILITIES):
        if _prctl(_CAPBSET_DROP, capability) == -1:
            break
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    nothing = (ctypes.c_uint32 * 6)()
    _check(_libc.capset(header, nothing), "giving up capabilities")
    _check(_prctl(_SET_NO_NEW_PRIVS, 1), "giving up new privileges")


class _Instructions(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("start", ctypes.c_void_p))


def filter_calls(program: bytes) -> None:
    """Make the kernel check every system call with this BPF program."""
    buffer = ctypes.create_string_buffer(program, len(program))
    instructions = _Instructions(len(program) // 8, ctypes.addressof(buffer))
    result = _prctl(_SET_SECCOMP, _SECCOMP_FILTER, ctypes.addressof(instructions))
    _check(result, "filtering system calls")
