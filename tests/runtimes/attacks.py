"""What an agent may try: scripts that find out whether an attack works, and change nothing.

Each is the body of a Python function that returns something true if the attack works. Paths are in
variables of the environment, so a script fails for want of rights, never of knowledge.
"""

from collections.abc import Mapping

#: Lines before each script.
PRELUDE = """
import ctypes, errno, fcntl, os, pathlib, resource, socket, subprocess, sys, termios, time
libc = ctypes.CDLL(None, use_errno=True)
place = {name: pathlib.Path(path) for name, path in os.environ.items() if path.startswith("/")}
proc = os.listdir("/proc") if os.path.isdir("/proc") else ()
pids = [int(one) for one in proc if one.isdigit()]

def anyone(file, text):
    for pid in pids:
        try:
            if pid != os.getpid() and text in pathlib.Path(f"/proc/{pid}/{file}").read_bytes():
                return pid
        except OSError:
            pass

def bot():
    return anyone("cmdline", b"the-bot-of" + b"-this-test") or 999999999  # Not this text itself.

def supervisor():
    return anyone("cmdline", b"/supervise" + b".py") or 999999999

def opens(path, flags):
    os.close(os.open(path, flags))
    return True

def call(number, *args):
    ctypes.set_errno(0)
    result = libc.syscall(number, *args)
    return result >= 0 or ctypes.get_errno() not in (errno.EPERM, errno.ENOSYS, errno.EACCES)

def connects(family, address):
    with socket.socket(family) as client:
        client.connect(address)
    return True
"""

#: By their lines in SECURITY.md, as those below.
ATTACKS: Mapping[str, str] = {
    "1 read the bot's environment": "return anyone('environ', b'MERGEWRIGHT_GITHUB_TOKEN=')",
    "1 read the bot's memory": "return opens(f'/proc/{bot()}/mem', os.O_RDONLY)",
    "1 follow the bot with ptrace": "return call(101, 0x4206, bot(), 0, 0)",
    "2 read the configuration": "return (place['CONFIG'] / 'mergewright.env').read_text()",
    "3 read the environment of a running git": "return anyone('environ', b'GIT_CONFIG_VALUE_0=')",
    "4 change the database": "return opens(place['DATA'] / 'mergewright.db', os.O_RDWR)",
    "4 use the command line": "return os.access(place['COMMAND'], os.X_OK)",
    "5 talk to tmux": (
        "return connects(socket.AF_UNIX, str(next((place['DATA'] / 'runtime').glob('t????????'))))"
    ),
    "6 read another run's files": (
        "return (place['DATA'] / 'sessions/widgets-13_r1/inputs/prompt.md').read_text()"
    ),
    "6 read another session's home": (
        "return (place['DATA'] / 'sessions/widgets-13_home/notes').read_text()"
    ),
    "6 read run tokens": "return (place['DATA'] / 'run-tokens' / 'widgets-13_r1').read_text()",
    "6 read the archive": "return (place['DATA'] / 'archive' / 'widgets-1').read_text()",
    "6 forge its supervisor's record": (
        "return opens(place['MERGEWRIGHT_RUN_DIR'] / 'pid.json', os.O_RDWR)"
    ),
    "7 change the project's mirror": "return opens(place['MIRROR'] / 'config', os.O_RDWR)",
    "7 read another project's mirror": (
        "return (place['DATA'] / 'mirrors/other.git/HEAD').read_text()"
    ),
    "7 change the bot's view": (
        "return opens(place['MERGEWRIGHT_WORKSPACE'].parent / 'bot.git' / 'config', os.O_RDWR)"
    ),
    "7 replace its own repository": (
        "own = place['MERGEWRIGHT_WORKSPACE'].parent / 'repository.git'\n"
        "    own.rename(own.with_suffix('.old')).rename(own)\n"
        "    return True"
    ),
    "8 read another checkout": (
        "return (place['DATA'] / 'workspaces/widgets-13/checkout/README').read_text()"
    ),
    "9 read the operator's keys": "return (place['OPERATOR'] / '.ssh' / 'id_ed25519').read_text()",
    "9 use the operator's SSH agent": "return connects(socket.AF_UNIX, str(place['SSH_SOCKET']))",
    "10 signal the bot": "os.kill(bot(), 0); return True",
    "10 signal its supervisor": "os.kill(supervisor(), 0); return True",
    "10 reach loopback of the host": (
        "return connects(socket.AF_INET, ('127.0.0.1', int(os.environ['PORT'])))"
    ),
    "10 reach an abstract socket of the host": (
        "return connects(socket.AF_UNIX, chr(0) + os.environ['ABSTRACT'])"
    ),
    "10 use another network than IP": "socket.socket(40, socket.SOCK_STREAM).close(); return True",
    "11 read the source": "return (place['SOURCE'] / 'bot' / 'cli' / 'program.py').read_text()",
    "11 read the prompts": "return (place['SOURCE'] / 'config' / 'prompts').is_dir()",
    "12 start too many processes": (
        "made = []\n"
        "    try:\n"
        "        while len(made) < 60: made.append(subprocess.Popen(['sleep', '60']))\n"
        "    finally:\n"
        "        for one in made: one.kill()\n"
        "    return True"
    ),
    "12 use too much memory": (
        "return subprocess.run([sys.executable, '-c', \"x = b'x' * (200 << 20)\"]).returncode == 0"
    ),
    "12 fill the temporary folder": (
        "file = pathlib.Path('/tmp', f'mw-{os.environ[\"ABSTRACT\"]}')\n"
        "    try: file.write_bytes(bytes(100 << 20))\n"
        "    finally: file.unlink(missing_ok=True)\n"
        "    return True"
    ),
}

#: What only the seccomp filter stops.
FILTERED: Mapping[str, str] = {
    "type into its terminal": "fcntl.ioctl(0, termios.TIOCSTI, b'x'); return True",
    "make a user namespace": (
        "child = os.fork()\n"
        "    if not child: os._exit(libc.unshare(0x10000000) != 0)\n"
        "    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0"
    ),
    "make one with clone3": "return call(435, 0, 0)",
    "use the kernel's keyrings": "return call(250, 0, -3, 0, 0, 0)",
    "follow a process": (
        "child = os.fork()\n"
        "    if not child: time.sleep(60)\n"
        "    try: return call(101, 0x4206, child, 0, 0)\n"
        "    finally: os.kill(child, 9)"
    ),
    "use io_uring": "return call(425, 0, 0)",
    "use AF_VSOCK": ATTACKS["10 use another network than IP"],
}

#: What only mounts stop where the bot runs as root.
AS_ROOT: Mapping[str, str] = {
    "have the kernel run programs": "return opens('/proc/sys/kernel/core_pattern', os.O_WRONLY)",
}
