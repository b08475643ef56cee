#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the root folder of steward's image, and its SBOM as SPDX.

Usage: rootfs.py PROGRAM ROOT SBOM

Copies PROGRAM, every library that it needs or loads on demand, CA certificates and time zones to
the empty folder ROOT, and writes to SBOM (SPDX 2.3, JSON) which Debian package each file is from.
The output depends on those files only, and on the time SOURCE_DATE_EPOCH, so that two builds give the
same image.  Nothing of PROGRAM is run: it may be of another architecture.
"""

import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

TOP = pathlib.Path(__file__).parents[2]
FOLDERS = {"Advanced Micro Devices X86-64": "x86_64-linux-gnu", "AArch64": "aarch64-linux-gnu"}
PLUGINS = ("caching_sha2_password", "client_ed25519", "mysql_clear_password", "sha256_password")
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
ZONES = "/usr/share/zoneinfo"
NOT_ZONES = ("posix", "right")  # copies of the same zones, and zones with leap seconds
USER = 65532
ACCOUNTS = {
    "etc/passwd": f"root:x:0:0:root:/:/sbin/nologin\nsteward:x:{USER}:{USER}::/:/sbin/nologin\n",
    "etc/group": f"root:x:0:\nsteward:x:{USER}:\n",
    "etc/nsswitch.conf": "hosts: files dns\n",
}


def readelf(file, *options):
    return subprocess.run(["readelf", "-W", *options, file], check=True, capture_output=True, text=True,
                          env={**os.environ, "LC_ALL": "C"}).stdout


def loader_of(program):
    """The path of its dynamic loader."""
    return re.search(r"program interpreter: (\S+)\]", readelf(program, "-l"))[1]


def folder_of(program):
    """Debian's folder of libraries for the machine of the program, which may be a foreign one."""
    machine = re.search(r"Machine: +(.*)", readelf(program, "-h"))[1]
    if machine not in FOLDERS:
        sys.exit(f"rootfs: {program} is for {machine}: only {', '.join(FOLDERS)}")
    return pathlib.Path("/usr/lib", FOLDERS[machine])


def libraries_of(file, folder, found):
    """Adds to `found` the paths of the libraries that the file needs, and of those that they need.
    Unlike ldd it runs nothing, so that the file may be of another architecture."""
    for name in re.findall(r"\(NEEDED\) +Shared library: \[(.*)\]", readelf(file, "-d")):
        path = folder / name
        if not path.exists():
            sys.exit(f"rootfs: {file} needs {name}, which {folder} does not have")
        if str(path) not in found:
            found.add(str(path))
            libraries_of(str(path), folder, found)


def opened_later(program, folder):
    """Libraries that the program loads by name; some may not be installed."""
    names = set(re.findall(rb"\blib(?:mariadb|pq)\.so\.\d+\b", pathlib.Path(program).read_bytes()))
    yield from (str(folder / name.decode()) for name in sorted(names))
    yield from (str(folder / "libmariadb3" / "plugin" / f"{plugin}.so") for plugin in PLUGINS)


def files_of(program):
    """{path in the image: source path}."""
    folder = folder_of(program)
    loader = loader_of(program)
    libraries = {f for f in opened_later(program, folder) if os.path.exists(f)}
    for file in [program, *sorted(libraries)]:
        libraries_of(file, folder, libraries)
    libraries.discard(str(folder / os.path.basename(loader)))
    files = {"/usr/bin/steward": program}
    files.update((path, os.path.realpath(path)) for path in sorted({*libraries, loader}))
    files[CERTIFICATES] = CERTIFICATES
    for path in sorted(pathlib.Path(ZONES).rglob("*")):
        if path.is_file() and path.relative_to(ZONES).parts[0] not in NOT_ZONES:
            files[str(path)] = os.path.realpath(path)
    return files


def copy(files, root):
    """Copies the files, and makes the usual links, such as /lib to usr/lib."""
    for name in ("bin", "sbin", "lib", "lib64"):
        (root / "usr" / name).mkdir(parents=True)
        (root / name).symlink_to(f"usr/{name}")
    for target, source in files.items():
        to = root / target.lstrip("/")
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, to)
        to.chmod(0o755 if "lib" in target or target.startswith("/usr/bin") else 0o644)
    for path, text in ACCOUNTS.items():
        (root / path).write_text(text, "utf-8")
    (root / "tmp").mkdir(mode=0o1777)


def owner_of(file):
    """(package, version, architecture) of a Debian file; None for others."""
    for path in (file, file.removeprefix("/usr")):
        found = subprocess.run(["dpkg-query", "-S", path], capture_output=True, text=True,
                               check=False)
        if found.returncode == 0:
            package = found.stdout.split(": ")[0].split(",")[0]
            shown = subprocess.run(
                ["dpkg-query", "-W", "-f", "${Package} ${Version} ${Architecture}", package],
                check=True, capture_output=True, text=True).stdout
            return tuple(shown.split())
    return None


def package_entry(name, version, **more):
    return {"SPDXID": "SPDXRef-Package-" + re.sub(r"[^A-Za-z0-9.-]", "-", name), "name": name,
            "versionInfo": version, "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
            "licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION",
            "copyrightText": "NOASSERTION", **more}


def debian_entry(package):
    name, version, architecture = package
    return package_entry(
        name, version, supplier="Organization: Debian",
        externalRefs=[{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                       "referenceLocator": f"pkg:deb/debian/{name}@{version}?arch={architecture}"}])


def sha256(file):
    return [{"algorithm": "SHA256", "checksumValue": hashlib.sha256(file.read_bytes()).hexdigest()}]


def file_entry(number, target, root):
    return {"SPDXID": f"SPDXRef-File-{number}", "fileName": f".{target}",
            "checksums": sha256(root / target.lstrip("/")),
            "licenseConcluded": "NOASSERTION", "copyrightText": "NOASSERTION"}


def created():
    """SOURCE_DATE_EPOCH, as SPDX writes a time."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", 0))))


def sbom(files, root, version):
    digest = hashlib.sha256()
    for target in sorted(files):
        digest.update(target.encode() + b"\0" + (root / target.lstrip("/")).read_bytes())
    own = package_entry("steward", version, licenseDeclared="Apache-2.0",
                        checksums=sha256(root / "usr/bin/steward"))
    listed = [file_entry(number, target, root) for number, target in enumerate(
        sorted(t for t in files if not t.startswith(ZONES) and t != CERTIFICATES))]
    owners = {entry["SPDXID"]: owner_of(os.path.realpath(files[entry["fileName"][1:]]))
              for entry in listed}
    # The certificate bundle is generated at installation and belongs to no package.
    named = {owner_of(f) for f in (f"{ZONES}/Etc/UTC", "/usr/sbin/update-ca-certificates")}
    entries = {o: debian_entry(o) for o in sorted(o for o in {*owners.values(), *named} if o)}
    others = entries.values()
    return {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"steward-{version}",
        "documentNamespace": f"https://steward.dev/spdx/steward-{version}-{digest.hexdigest()}",
        "creationInfo": {"created": created(), "creators": ["Tool: rootfs.py"]},
        "packages": [own, *others],
        "files": listed,
        "relationships": [
            {"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
             "relatedSpdxElement": own["SPDXID"]},
            *({"spdxElementId": own["SPDXID"], "relationshipType": "DEPENDS_ON",
               "relatedSpdxElement": o["SPDXID"]} for o in others),
            *({"spdxElementId": entries.get(owner, own)["SPDXID"], "relationshipType": "CONTAINS",
               "relatedSpdxElement": file} for file, owner in owners.items())],
    }


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    program, root, out = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    version = re.search(r"^  version: '(.*)',", (TOP / "meson.build").read_text("utf-8"), re.M)[1]
    files = files_of(program)
    copy(files, root)
    out.write_text(json.dumps(sbom(files, root, version), indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
