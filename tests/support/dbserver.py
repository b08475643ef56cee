# SPDX-License-Identifier: Apache-2.0
"""Common code of the tests' database servers: a CA, folders, starting and stopping."""

import functools
import os
import pathlib
import pwd
import re
import shutil
import subprocess
import typing

from . import net, pause, scratch, started, wait

ADMIN = "steward-admin"
ADMIN_PASSWORD = "adm1n-Pa55-word"


def make_ca(folder, name="test CA"):
    """A CA in folder/ca.crt and folder/ca.key."""
    folder.mkdir(parents=True, exist_ok=True)
    _openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
             "-days", "2", "-subj", f"/CN={name}", "-keyout", folder / "ca.key",
             "-out", folder / "ca.crt")
    return folder / "ca.crt"


def make_pair(ca_folder, folder, names="DNS:localhost,IP:127.0.0.1", days=2,
              subject="/CN=database"):
    """folder/tls.crt and folder/tls.key, signed by the CA; with days=0 it has expired already."""
    folder.mkdir(parents=True, exist_ok=True)
    extensions = folder / "san"
    extensions.write_text(f"subjectAltName={names}\n")
    _openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
             "-subj", subject, "-keyout", folder / "tls.key", "-out", folder / "csr")
    _openssl("x509", "-req", "-days", days, "-in", folder / "csr", "-CA", ca_folder / "ca.crt",
             "-CAkey", ca_folder / "ca.key", "-CAcreateserial", "-extfile", extensions,
             "-out", folder / "tls.crt")


def _openssl(*args):
    subprocess.run(["openssl", *map(str, args)], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)


def free_user(*names):
    """The first of these users that exists, or `nobody`, for servers that refuse to run as root."""
    for name in (*names, "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise RuntimeError("there is no user to run a server as")


def as_user(user):
    """The beginning of a command that runs as `user` (None: as the current user)."""
    if user is None:
        return []
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups", "--"]


def program(name):
    """The path of a server's program, or None; /usr/sbin is not in an ordinary user's PATH."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin")


class Install(typing.NamedTuple):
    """A server of one version on this machine."""

    version: str  # as the program reports it
    root: pathlib.Path  # "/", or the folder into which it was unpacked
    program: str


@functools.cache
def install(engine, line, path):
    """The server of a release line, installed or unpacked by scripts/bootstrap, with its program at
    `path` below the root: an Install, or None."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "steward")
    unpacked = max(cache.glob(f"{engine}-{line}.*"), default=None,
                   key=lambda folder: [int(n) for n in re.findall(r"\d+", folder.name)])
    root = unpacked or pathlib.Path("/")
    found = root / path
    if not found.exists():
        return None
    text = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout
    version = re.search(r"\d+(\.\d+)+", text)
    if not version or not version[0].startswith(f"{line}.") or ("MariaDB" in text) != (
            engine == "mariadb"):
        return None
    return Install(version[0], root, str(found))


def missing(engine, line, path):
    """Why there can be no such server here; "" when there can."""
    return "" if install(engine, line, path) else \
        f"no {engine} {line} is here: run 'scripts/bootstrap test database'"


class Server:
    """A server on loopback, in a folder of its own that is removed with it."""

    engine = None
    user = None  # the user that it runs as, None: the current user

    def __init__(self, installed):
        self.installed = installed
        started.note(self.engine, installed.version)
        self.folder = scratch.folder("db")
        self.port = net.free_port()
        self.process = None
        self.ca = make_ca(self.folder / "ca")
        make_pair(self.folder / "ca", self.folder / "tls")
        self.admin_file = self.folder / "admin-password"
        self.admin_file.write_text(ADMIN_PASSWORD)

    def own_folder(self):
        """Gives the folder to the user that the server runs as."""
        if self.user:
            for root, folders, files in os.walk(self.folder):
                for name in [".", *folders, *files]:
                    os.lchown(os.path.join(root, name), self.user.pw_uid, self.user.pw_gid)
        os.chmod(self.folder / "tls" / "tls.key", 0o600)

    def spawn(self, command):
        """Starts it; its output goes to folder/log."""
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen([*as_user(self.user), *map(str, command)],
                                            stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=subprocess.STDOUT, cwd=self.folder,
                                            env={"PATH": os.environ["PATH"], "LC_ALL": "C"})

    def wait_ready(self):
        """Waits until it answers."""
        def ready():
            assert self.process.poll() is None, f"it ended:\n{self.log_text()[-3000:]}"
            return self.answers()
        wait.until(f"{type(self).__name__} to answer", ready, 60)

    def pause(self):
        """It accepts connections and never answers."""
        pause.pause(self.process)

    def resume(self):
        """Undoes pause()."""
        pause.resume(self.process)

    def kill(self):
        """Ends it as a power cut would."""
        if self.process and self.process.poll() is None:
            self.process.kill()
        if self.process:
            self.process.wait()

    def log_text(self):
        """All that it has logged."""
        return "\n".join(path.read_text("utf-8", "replace") for path in self.folder.glob("*log")
                         if path.is_file())

    def close(self):
        """Ends it, and removes its folder."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def target(self, name, **more):
        """An entry of the list of targets; by default it allows all that the tests need."""
        return {"name": name, "engine": self.engine, "host": "127.0.0.1", "port": self.port,
                "admin": {"user": ADMIN, "passwordFile": str(self.admin_file)},
                "tls": {"mode": "VerifyFull", "caFile": str(self.ca)},
                "allowedDatabases": ["*"], "allowAdoption": ["*"], "allowIAM": True, **more}
