# SPDX-License-Identifier: Apache-2.0
"""The programs that scripts/bench operators compares: how each is built, and how it is started.

Each implements the kind Redirect of examples/redirect.  A contender whose tools are not there raises
Missing, with the reason, and the others go on.
"""

import dataclasses
import functools
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

from bench.fleet import say
from support import net, paths, wait

COMPARE = paths.TOP / "examples" / "compare"
REDIRECT = paths.TOP / "examples" / "redirect"
WORKERS = 4
BUILD_SECONDS = 3600
RESTORED_SOURCE = 'source = "registry'


class Missing(Exception):
    """A contender that cannot be built here; the text says what is missing."""


def cache():
    """Where builds are kept."""
    folder = paths.cache_root() / "bench" / "operators"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def run(command, **options):
    """What a command prints; its failure shows the end of what it wrote."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          timeout=BUILD_SECONDS, check=False, **options)
    if done.returncode != 0:
        raise RuntimeError(f"{command}:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    return done.stdout


# --- what a contender is


@dataclasses.dataclass(frozen=True)
class Contender:
    """A framework, its operator, and how to build and start it."""

    name: str
    sources: tuple          # files written by hand
    version: object         # function: the version of the framework
    build: object           # function: the path of the program
    start: object           # function of (binary, Ports, certificate folder, kubeconfig): (command, variables)

    def lines(self):
        """Lines of its sources that are neither empty nor comments."""
        return sum(code_lines(path.read_text("utf-8"), path.suffix) for path in self.sources)


def code_lines(text, suffix):
    """Lines with code.  Go's markers ("// +kubebuilder:...") are code: tools generate from them."""
    text = text if suffix in (".build", ".toml", ".mod") else re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    comment = "#" if suffix in (".build", ".toml") else "//"
    lines = (line.strip() for line in text.splitlines())
    if suffix == ".rs":
        return sum(bool(line) and not line.startswith("//") for line in lines)
    return sum(bool(line) and (not line.startswith(comment) or line.startswith("// +")) for line in lines)


class Ports:
    """The addresses of one process."""

    def __init__(self):
        self.webhook, self.health, self.metrics = (net.free_port() for _ in range(3))


class Process:
    """A contender that runs, and what it uses."""

    def __init__(self, contender, binary, folder, kubeconfig, cpu=None):
        self.contender, self.ports = contender, Ports()
        self.log_path = pathlib.Path(folder, f"{contender.name}.log")
        command, variables = contender.start(binary, self.ports, folder, kubeconfig)
        begin = time.monotonic()
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**os.environ, **variables, "KUBECONFIG": str(kubeconfig)},
                preexec_fn=(lambda: os.sched_setaffinity(0, {cpu})) if cpu is not None else None)
        self.pid = self.process.pid
        try:
            wait.until(f"{contender.name} to be ready", self._ready, 120, every=0.002)
        except BaseException:
            self.stop()
            raise
        self.ready_ms = (time.monotonic() - begin) * 1000

    def _ready(self):
        if self.process.poll() is not None:
            raise RuntimeError(self.log_tail())
        return net.http_get(f"http://127.0.0.1:{self.ports.health}/readyz")[0] == 200

    def metrics_text(self):
        """/metrics; kube-rs serves it beside the probes."""
        for port in (self.ports.metrics, self.ports.health):
            status, text = net.http_get(f"http://127.0.0.1:{port}/metrics")
            if status == 200:
                return text
        raise RuntimeError(f"{self.contender.name} serves no metrics")

    def stop(self):
        """SIGTERM, and SIGKILL if that does not end it."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def log_tail(self):
        """The end of its log, for messages."""
        return "\n".join(self.log_path.read_text("utf-8", "replace").splitlines()[-15:])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


# --- libsteward


def steward_version():
    """Of the work tree."""
    text = (paths.TOP / "meson.build").read_text("utf-8")
    commit = run(["git", "-C", paths.TOP, "rev-parse", "--short=10", "HEAD"]).strip()
    return f"{re.search(r'''version: '([^']+)''', text)[1]} ({commit})"


def build_steward():
    """$STEWARD_REDIRECT, else examples/redirect with the library of this tree as a static subproject."""
    given = os.environ.get("STEWARD_REDIRECT")
    if given:
        return pathlib.Path(given)
    kept = cache() / "libsteward-redirect"
    with tempfile.TemporaryDirectory(prefix="steward-bench-") as name:
        top = pathlib.Path(name) / "redirect"
        shutil.copytree(REDIRECT, top)
        (top / "subprojects").mkdir()
        (top / "subprojects" / "libsteward").symlink_to(paths.TOP)
        run(["meson", "setup", "build", "--buildtype=release", "--wrap-mode=forcefallback",
             "-Ddefault_library=static"], cwd=top)
        run(["ninja", "-C", "build", "redirect"], cwd=top)
        run(["strip", "-o", kept, top / "build" / "redirect"])
    return kept


def start_steward(binary, ports, folder, kubeconfig):
    """The command line."""
    return [binary, "run", "--kubeconfig", kubeconfig, "--namespace", "default", "--workers", WORKERS,
            "--webhook-bind-address", f"127.0.0.1:{ports.webhook}", "--webhook-cert-path", folder,
            "--health-probe-bind-address", f"127.0.0.1:{ports.health}",
            "--metrics-bind-address", f"127.0.0.1:{ports.metrics}", "--metrics-secure=false"], {}


# --- controller-runtime


GO = COMPARE / "controller-runtime"


def go_version():
    """The pinned one."""
    text = (GO / "go.mod").read_text("utf-8")
    return re.search(r"sigs\.k8s\.io/controller-runtime v(\S+)", text)[1]


@functools.cache
def go():
    """A Go that is new enough: the machine's, or the one of the cache."""
    script = f"LIB={paths.SCRIPTS}/lib; for p in common apt go-toolchain; do . $LIB/$p.sh; done; " \
             f"go_use {re.search(r'^go (.+)$', (GO / 'go.mod').read_text('utf-8'), re.M)[1]}; echo \"$GO\""
    try:
        return run(["bash", "-euc", script]).strip().splitlines()[-1]
    except (RuntimeError, OSError) as error:
        raise Missing(f"no Go that is new enough: {str(error).splitlines()[-1]}") from error


def build_go():
    """Static, without symbols, as releases of operators are built."""
    kept = cache() / "controller-runtime-redirect"
    env = {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly", "GOWORK": "off"}
    run([go(), "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", kept, "."], cwd=GO, env=env)
    return kept


def start_go(binary, ports, folder, kubeconfig):
    """The command line."""
    return [binary, f"--kubeconfig={kubeconfig}", f"--webhook-bind-address=127.0.0.1:{ports.webhook}",
            f"--webhook-cert-path={folder}", f"--health-probe-bind-address=127.0.0.1:{ports.health}",
            f"--metrics-bind-address=127.0.0.1:{ports.metrics}", f"--workers={WORKERS}"], {}


# --- kube-rs


RUST = COMPARE / "kube-rs"


def rust_version():
    """The pinned one."""
    return re.search(r'^kube = .*"=([^"]+)"', (RUST / "Cargo.toml").read_text("utf-8"), re.M)[1]


@functools.cache
def cargo():
    """$CARGO, or the one of $PATH, when its Rust is new enough."""
    least = re.search(r'^rust-version = "([^"]+)"', (RUST / "Cargo.toml").read_text("utf-8"), re.M)[1]
    program = os.environ.get("CARGO") or shutil.which("cargo")
    hint = f"Rust {least} is needed; Debian 12 has packages rustc-web and cargo-web"
    if not program:
        raise Missing(f"no cargo: {hint}")
    found = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60, check=False)
    version = re.search(r"\d+\.\d+", found.stdout)
    if not version or as_numbers(version[0]) < as_numbers(least):
        raise Missing(f"cargo is {found.stdout.strip() or found.stderr.strip()}: {hint}")
    return program


def as_numbers(version):
    """"1.89" as a tuple that compares."""
    return tuple(int(part) for part in version.split("."))


def build_rust():
    """With the versions of pinned.toml, a Cargo.lock without the lines that name the registry."""
    kept, work = cache() / "kube-rs-redirect", cache() / "kube-rs"
    env = {**os.environ, "CARGO_TARGET_DIR": str(cache() / "kube-rs-target")}
    program = cargo()
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(RUST, work)
    lock = work / "Cargo.lock"
    run([program, "generate-lockfile"], cwd=work, env=env)
    lock.write_text(restored_lock((RUST / "pinned.toml").read_text("utf-8"), lock.read_text("utf-8")), "utf-8")
    run([program, "build", "--release", "--locked"], cwd=work, env=env)
    shutil.copy(cache() / "kube-rs-target" / "release" / "redirect", kept)
    return kept


def stripped_lock(text):
    """A Cargo.lock without the lines that name the registry."""
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("source = "))


def restored_lock(pinned, sample):
    """The opposite of stripped_lock: the registry is that of a lock file which this cargo wrote."""
    sources = {line for line in sample.splitlines() if line.startswith(RESTORED_SOURCE)}
    if len(sources) != 1:
        raise RuntimeError(f"expected one registry, found {sorted(sources)}")
    [source] = sources
    return re.sub(r"^(checksum = )", lambda found: f"{source}\n{found[1]}", pinned, flags=re.M)


def start_rust(_binary, ports, folder, _kubeconfig):
    """Its settings are variables."""
    return [_binary], {"WEBHOOK_ADDRESS": f"127.0.0.1:{ports.webhook}", "WEBHOOK_CERT_PATH": str(folder),
                       "STATUS_ADDRESS": f"127.0.0.1:{ports.health}", "RUST_LOG": "info"}


ALL = (
    Contender("libsteward", (REDIRECT / "meson.build", REDIRECT / "redirect.c"), steward_version, build_steward,
              start_steward),
    Contender("controller-runtime", tuple(sorted(p for p in GO.glob("*.go") if not p.name.startswith("zz_"))),
              go_version, build_go, start_go),
    Contender("kube-rs", (RUST / "Cargo.toml", *sorted((RUST / "src").glob("*.rs"))),
              rust_version, build_rust, start_rust),
)


def build_all(names, again=True):
    """({contender: program}, {name: why it is missing}); unless `again`, those of the last run."""
    built, missing = {}, {}
    for contender in ALL:
        if contender.name not in names:
            continue
        kept = cache() / f"{contender.name}-redirect"
        build = again or not kept.exists()
        say(f"{contender.name} {contender.version()}: {'building' if build else 'as built before'}")
        try:
            built[contender] = contender.build() if build else kept
        except Missing as why:
            missing[contender.name] = str(why)
            say(f"{contender.name}: left out: {why}")
    return built, missing


def toolchains():
    """The compilers, for the record."""
    found = {}
    for name, command in (("gcc", ["gcc", "-dumpfullversion"]), ("go", ["go", "version"]),
                          ("rust", ["rustc", "--version"])):
        try:
            found[name] = run(command).strip()
        except (OSError, RuntimeError):
            found[name] = "not there"
    return found
