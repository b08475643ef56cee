# SPDX-License-Identifier: Apache-2.0
"""libsteward, installed into a clean prefix, and programs that are built with nothing else of the tree."""

import os
import shutil
import subprocess

from . import paths

SOURCES = ("certs", "controller", "include", "lib", "operator", "src", "testing", "webhook", "meson.build",
           "meson_options.txt")
EXAMPLES = paths.TOP / "examples"
FLAGS = ("-std=gnu11", "-Wall", "-Wextra", "-Werror")


def run(*command, cwd=None, env=None, timeout=900):
    """What a command prints; its end with another status than 0 is a failure."""
    done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True,
                          timeout=timeout, check=False, env={**os.environ, **(env or {})})
    assert done.returncode == 0, f"{command}:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def copy(folder):
    """Copies the sources of the library.  A build folder in the copy has the same relative paths as the
    build under test has, so that ccache has what was compiled there."""
    folder.mkdir()
    for name in SOURCES:
        (shutil.copytree if (paths.TOP / name).is_dir() else shutil.copy)(paths.TOP / name, folder / name)
    return folder


def cache(top):
    """The environment of a build of the sources in `top` with ccache."""
    return {"CCACHE_DIR": str(paths.cache_root() / "ccache"), "CCACHE_BASEDIR": str(top),
            "CCACHE_NOHASHDIR": "1"}


class Library:
    """The library under a prefix."""

    def __init__(self, folder):
        top = copy(folder / "sources")
        self.prefix, self.build = folder / "prefix", top / "build"
        compiler = "ccache cc" if shutil.which("ccache") else "cc"
        run("meson", "setup", self.build, top, "-Dprogram=false", "-Dwerror=true",
            f"--prefix={self.prefix}", "--libdir=lib", env={"CC": compiler})
        run("ninja", "-C", self.build, env=cache(top))
        run("meson", "install", "-C", self.build, "--no-rebuild")
        self.env = {"PKG_CONFIG_PATH": str(self.prefix / "lib" / "pkgconfig"),
                    "LD_LIBRARY_PATH": str(self.prefix / "lib")}

    def config(self, *options):
        """What pkg-config says, as words."""
        return run("pkg-config", *options, "libsteward", env=self.env).split()

    def compile(self, folder, *sources, libraries=()):
        """A program of an example, built with the compiler and pkg-config alone."""
        program = folder / sources[0].stem
        run("cc", *FLAGS, "-o", program, *sources, *self.config("--cflags", "--libs"), *libraries,
            env=self.env)
        return program

    def meson(self, project, folder, compiler="cc"):
        """The build folder of a project with a meson.build."""
        run("meson", "setup", folder, project, "-Dwerror=true", env={**self.env, "CC": compiler})
        run("ninja", "-C", folder, env=self.env)
        return folder
