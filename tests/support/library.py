# SPDX-License-Identifier: Apache-2.0
"""libsteward, installed into a clean prefix, and programs that are built with nothing else of the tree."""

import os
import shutil
import subprocess

from . import paths

# What another checkout has compiled is not compiled again.
CACHE = {"CCACHE_DIR": str(paths.cache_root() / "ccache"), "CCACHE_BASEDIR": str(paths.TOP),
         "CCACHE_NOHASHDIR": "1"}
EXAMPLES = paths.TOP / "examples"
FLAGS = ("-std=gnu11", "-Wall", "-Wextra", "-Werror")


def run(*command, cwd=None, env=None, timeout=900):
    """What a command prints; its end with another status than 0 is a failure."""
    done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True,
                          timeout=timeout, check=False, env={**os.environ, **(env or {})})
    assert done.returncode == 0, f"{command}:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


class Library:
    """The library under a prefix."""

    def __init__(self, folder):
        self.prefix, self.build = folder / "prefix", folder / "build"
        compiler = "ccache cc" if shutil.which("ccache") else "cc"
        run("meson", "setup", self.build, paths.TOP, "-Dprogram=false", "-Dwerror=true",
            f"--prefix={self.prefix}", "--libdir=lib", env={"CC": compiler})
        run("ninja", "-C", self.build, env=CACHE)
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

    def meson(self, project, folder):
        """The build folder of a project with a meson.build."""
        run("meson", "setup", folder, project, "-Dwerror=true", env=self.env)
        run("ninja", "-C", folder, env=self.env)
        return folder
