# SPDX-License-Identifier: Apache-2.0
"""A release, as users get it from scripts/release: only its files are used, none of the source tree."""

import gzip
import hashlib
import json
import os
import pathlib
import re
import subprocess
import tarfile

import pytest
import yaml

from support import cluster as k8s
from support import gotools, paths, readme, releases, wait
from support import steward as stw

VERSION, IMAGE = releases.VERSION, releases.IMAGE
ARCHITECTURES = ("amd64", "arm64")
DEPLOYMENT = "steward-controller-manager"
MAX_COMPRESSED = 14 * 1024 * 1024
OLM_CERTIFICATES = "--webhook-cert-path=/tmp/k8s-webhook-server/serving-certs"


@pytest.fixture(scope="session")
def release():
    """Its folder.  $STEWARD_TEST_RELEASE: an existing one, made with --image of releases.IMAGE."""
    given = os.environ.get("STEWARD_TEST_RELEASE")
    if given:
        return pathlib.Path(given)
    if releases.missing():
        pytest.skip(releases.missing())
    return releases.shared()


class Layout:
    """The OCI layout of a release, as a registry would read it: blobs by digest."""

    def __init__(self, path):
        with tarfile.open(path) as archive:
            self.files = {m.name.removeprefix("./"): archive.extractfile(m).read()
                          for m in archive if m.isfile()}
        self.index = json.loads(self.files["index.json"])

    def blob(self, descriptor):
        data = self.files[f"blobs/sha256/{descriptor['digest'].removeprefix('sha256:')}"]
        assert len(data) == descriptor["size"]
        assert f"sha256:{hashlib.sha256(data).hexdigest()}" == descriptor["digest"]
        return data

    def images(self):
        """{architecture: manifest}"""
        top, = self.index["manifests"]
        assert top["mediaType"] == "application/vnd.oci.image.index.v1+json"
        return {d["platform"]["architecture"]: json.loads(self.blob(d))
                for d in json.loads(self.blob(top))["manifests"]}

    def unpack(self, arch, folder):
        """The root folder of the image."""
        manifest = self.images()[arch]
        config = json.loads(self.blob(manifest["config"]))
        for layer, diff in zip(manifest["layers"], config["rootfs"]["diff_ids"], strict=True):
            data = gzip.decompress(self.blob(layer))
            assert f"sha256:{hashlib.sha256(data).hexdigest()}" == diff
            subprocess.run(["tar", "-C", folder, "-xf", "-"], input=data, check=True)
        return folder


@pytest.fixture(scope="module")
def layout(release):
    return Layout(release / f"steward-{VERSION}.oci.tar")


@pytest.fixture(scope="module", params=ARCHITECTURES)
def root(request, layout, tmp_path_factory):
    """(architecture, root folder)"""
    return request.param, layout.unpack(request.param, tmp_path_factory.mktemp(request.param))


def emulated(root, *arguments, **more):
    """Runs the program of an image with that image's loader and libraries."""
    arch, folder = root
    emulator = ["qemu-aarch64", "-L", folder] if arch == "arm64" else ["chroot", folder]
    program = folder / "usr/bin/steward" if arch == "arm64" else "/usr/bin/steward"
    return subprocess.run([*emulator, program, *arguments], text=True, capture_output=True, timeout=60,
                          check=False, **more)


# --- what is in it


def test_release_contains_its_files(release):
    assert sorted(p.name for p in release.iterdir()) == sorted([
        "SHA256SUMS", "install-1.20.yaml", "install-1.21.yaml", "install-1.29.yaml",
        *(f"steward-{VERSION}{end}" for end in ("-amd64.spdx.json", "-arm64.spdx.json", "-olm.tgz",
                                               ".buildinfo", ".oci.tar", ".tgz"))])
    subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=release, check=True,
                   capture_output=True)
    listed = {line.split()[1] for line in (release / "SHA256SUMS").read_text("ascii").splitlines()}
    assert listed == {p.name for p in release.iterdir()} - {"SHA256SUMS"}


def test_image_index_has_two_architectures(layout):
    assert json.loads(layout.files["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}
    found = layout.images()
    assert sorted(found) == list(ARCHITECTURES)
    configs = {arch: json.loads(layout.blob(m["config"])) for arch, m in found.items()}
    for arch, config in configs.items():
        assert (config["architecture"], config["os"]) == (arch, "linux")
        assert config["config"]["User"] == "65532:65532"
        assert sum(layer["size"] for layer in found[arch]["layers"]) < MAX_COMPRESSED
    assert configs["amd64"]["config"] == configs["arm64"]["config"]
    used = {d["digest"] for m in found.values() for d in (m["config"], *m["layers"])}
    assert len([f for f in layout.files if f.startswith("blobs/")]) == len(used) + 3  # manifests, index


def test_program_runs_on_both_architectures(root):
    """With the loader and the libraries of its image, arm64 in an emulator."""
    machine = subprocess.run(["readelf", "-h", root[1] / "usr/bin/steward"], text=True, check=True,
                             capture_output=True).stdout
    assert {"amd64": "X86-64", "arm64": "AArch64"}[root[0]] in machine
    assert emulated(root, "version").stdout.splitlines()[0] == f"steward {VERSION}"
    sample = (paths.SAMPLES / "mycompany_v1_app.yaml").read_text("utf-8")
    good = emulated(root, "validate", "-", input=sample)
    assert good.returncode == 0, good.stdout + good.stderr
    bad = emulated(root, "validate", "-", input=sample.replace("replicas:", "replicsa:"))
    assert bad.returncode == 1
    assert 'did you mean "replicas"' in bad.stdout + bad.stderr
    printed = subprocess.run([paths.steward_binary(), "print", "crds", "--rules"], text=True,
                             capture_output=True, check=True).stdout
    assert emulated(root, "print", "crds", "--rules").stdout == printed


def test_sbom_equals_that_of_the_image(root, release):
    arch, folder = root
    bill = json.loads((release / f"steward-{VERSION}-{arch}.spdx.json").read_text("utf-8"))
    assert bill == json.loads((folder / "usr/share/sbom/steward.spdx.json").read_text("utf-8"))
    assert bill["spdxVersion"] == "SPDX-2.3"
    purls = [r["referenceLocator"] for p in bill["packages"] for r in p.get("externalRefs", ())]
    assert any(re.match(rf"pkg:deb/debian/libssl3t64@.+\?arch={arch}$", purl) for purl in purls)
    libraries = {str(f.relative_to(folder)) for f in folder.rglob("*.so*")}
    assert libraries <= {re.sub("^./lib", "usr/lib", f["fileName"]).removeprefix("./")
                         for f in bill["files"]}
    for entry in bill["files"]:
        content = (folder / entry["fileName"]).read_bytes()
        assert entry["checksums"][0]["checksumValue"] == hashlib.sha256(content).hexdigest()
    known = (release / f"steward-{VERSION}.buildinfo").read_text("utf-8").splitlines()
    for package in bill["packages"]:
        if package["name"] != "steward":
            assert [line for line in known if line.startswith(f"{arch}: {package['name']}:")
                    and line.endswith(f" {package['versionInfo']}")], package["name"]


def test_manifests_name_the_image_by_digest(release, layout):
    wanted = f"{IMAGE}:{VERSION}@{layout.index['manifests'][0]['digest']}"
    for path in release.glob("install-*.yaml"):
        deployment, = [o for o in yaml.safe_load_all(path.read_text("utf-8")) if o["kind"] == "Deployment"]
        assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == wanted
    with tarfile.open(release / f"steward-{VERSION}.tgz") as archive:
        values = yaml.safe_load(archive.extractfile("steward/values.yaml"))
    assert values["image"]["repository"] == IMAGE
    assert values["image"]["digest"] == wanted.partition("@")[2]


# --- the OLM bundle


@pytest.fixture(scope="module")
def bundle(release, tmp_path_factory):
    folder = tmp_path_factory.mktemp("olm")
    with tarfile.open(release / f"steward-{VERSION}-olm.tgz") as archive:
        archive.extractall(folder, filter="data")
    return folder / "bundle"


def test_operator_framework_accepts_the_bundle(bundle):
    if not releases.checker():
        pytest.skip("no operator-verify is here: run 'scripts/bootstrap release'")

    def faults():
        done = subprocess.run([releases.checker(), "manifests", bundle / "manifests"], text=True,
                              capture_output=True, timeout=60, check=False)
        return [line for line in (done.stdout + done.stderr).splitlines()
                if "rror" in line or done.returncode]
    assert faults() == []
    path, = (bundle / "manifests").glob("*.clusterserviceversion.yaml")
    good = path.read_text("utf-8")
    path.write_text(good.replace("installModes:", "installMode:"), "utf-8")
    assert faults()
    path.write_text(good, "utf-8")


def test_bundle_matches_the_printed_manifests(bundle, steward_binary):
    """Without those on what OLM makes: the webhook configurations and their certificate."""
    def printed(*words):
        text = subprocess.run([steward_binary, "print", *words], text=True, capture_output=True,
                              check=True).stdout
        return [o for o in yaml.safe_load_all(text) if o]
    path, = (bundle / "manifests").glob("*.clusterserviceversion.yaml")
    spec = yaml.safe_load(path.read_text("utf-8"))["spec"]
    crds = printed("crds")
    assert {(o["name"], o["kind"]) for o in spec["customresourcedefinitions"]["owned"]} == \
        {(o["metadata"]["name"], o["spec"]["names"]["kind"]) for o in crds}
    assert len(list((bundle / "manifests").glob("*.crd.yaml"))) == len(crds)
    hooks = [h for o in printed("webhooks") for h in o["webhooks"]]
    assert {(h["generateName"], h["webhookPath"]) for h in spec["webhookdefinitions"]} == \
        {(h["name"], h["clientConfig"]["service"]["path"]) for h in hooks}
    install = spec["install"]["spec"]
    container, = install["deployments"][0]["spec"]["template"]["spec"]["containers"]
    assert OLM_CERTIFICATES in container["args"]
    assert {h["targetPort"] for h in spec["webhookdefinitions"]} <= {p["name"] for p in container["ports"]}

    def rights(rules):
        return {(g, r, v, n) for rule in rules for g in rule["apiGroups"] for r in rule["resources"]
                for v in rule["verbs"] for n in rule.get("resourceNames", [None])}
    given = rights(rule for p in (*install["permissions"], *install["clusterPermissions"])
                   for rule in p["rules"])
    whole = rights(rule for o in printed("rbac") for rule in o.get("rules", ()))
    assert given < whole
    assert {r[1] for r in whole - given} == {"mutatingwebhookconfigurations", "secrets",
                                             "validatingwebhookconfigurations"}
    annotations = yaml.safe_load(path.read_text("utf-8"))["metadata"]["annotations"]
    assert {o["kind"] for o in json.loads(annotations["alm-examples"])} == \
        {o["spec"]["names"]["kind"] for o in crds}
    labels = yaml.safe_load((bundle / "metadata/annotations.yaml").read_text("utf-8"))["annotations"]
    docker = (bundle / "bundle.Dockerfile").read_text("utf-8")
    assert all(f"LABEL {name}={value}\n" in docker for name, value in labels.items())


# --- with users' tools, on a cluster


@pytest.fixture(scope="module")
def bare(release):
    """A cluster of its own, without steward, where users' tools may create and delete kinds."""
    assert release
    with k8s.of_its_own(f"release-{os.getpid()}") as cluster:
        yield cluster


@pytest.fixture
def helm(bare, tmp_path):
    """helm(words...) on the cluster; its output."""
    if gotools.missing("helm"):
        pytest.skip(gotools.missing("helm"))
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "KUBECONFIG": str(bare.kubeconfig)}

    def run(*words):
        done = gotools.run("helm", *words, env=env)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "warning" not in done.stderr.lower(), done.stderr
        return done.stdout
    return run


def kinds(cluster):
    return {o["metadata"]["name"] for o in cluster.list("crd")
            if o["metadata"].get("labels", {}).get("app.kubernetes.io/part-of") == "steward"}


def wait_served(cluster):
    """Until the API server can read objects of the kinds.  A definition that is deleted before has its
    finalizer tried again after minutes ("storage is (re)initializing")."""
    for crd in cluster.list("crd"):
        spec = crd["spec"]
        version, = [v["name"] for v in spec["versions"] if v["storage"]]
        path = f"/apis/{spec['group']}/{version}/{spec['names']['plural']}?resourceVersion=0"
        wait.until(f"{path} to be served",
                   lambda path=path: cluster.api.request("GET", path).status == 200, 30)


def log_level(cluster):
    text = cluster.get("configmap", "steward-config", stw.NAMESPACE)["data"]["steward.yaml"]
    return yaml.safe_load(text)["logLevel"]


@pytest.mark.oldest("API versions of the chart")
def test_helm_installs_upgrades_and_removes_the_archive(bare, helm, release):
    archive = release / f"steward-{VERSION}.tgz"
    assert "1 chart(s) linted, 0 chart(s) failed" in helm("lint", "--strict", archive)
    helm("install", "steward", archive, "--namespace", stw.NAMESPACE, "--create-namespace")
    pod = bare.get("deployment", DEPLOYMENT, stw.NAMESPACE)["spec"]["template"]["spec"]
    assert pod["containers"][0]["image"].startswith(f"{IMAGE}@sha256:")
    assert log_level(bare) == "info"
    before = kinds(bare)
    assert len(before) == 7
    helm("upgrade", "steward", archive, "--namespace", stw.NAMESPACE, "--set", "logLevel=debug")
    assert log_level(bare) == "debug"
    # Its hook runs steward in a pod, and this cluster has no node.
    helm("uninstall", "steward", "--namespace", stw.NAMESPACE, "--no-hooks")
    wait.until("its objects to be gone",
               lambda: not bare.get("deployment", DEPLOYMENT, stw.NAMESPACE), 30)
    for kind, name in stw.WEBHOOK_CONFIGURATIONS:
        assert bare.get(kind, name) is None
    assert kinds(bare) == before  # crds.keep
    wait_served(bare)
    bare.kubectl("delete", "crd", *sorted(before))
    bare.kubectl("delete", "namespace", stw.NAMESPACE)  # helm leaves it


@pytest.mark.oldest("API versions of the manifests, and warnings of the server")
def test_kubectl_applies_and_deletes_one_file_without_a_warning(bare, release):
    path = max((p for p in release.glob("install-1.*.yaml") if int(p.stem[10:]) <= bare.minor()),
               key=lambda p: int(p.stem[10:]))
    objects = [o for o in yaml.safe_load_all(path.read_text("utf-8")) if o]
    first = bare.kubectl("apply", "-f", str(path))
    assert first.stderr == ""
    assert len(first.stdout.splitlines()) == len(objects)
    again = bare.kubectl("apply", "-f", str(path))
    assert again.stderr == ""
    assert kinds(bare) == {o["metadata"]["name"] for o in objects if o["kind"] == "CustomResourceDefinition"}
    wait_served(bare)
    bare.kubectl("delete", "-f", str(path), "--wait=false", "--ignore-not-found")
    wait.until("the kinds to be gone", lambda: not kinds(bare), 60)
    for kind, name in stw.WEBHOOK_CONFIGURATIONS:
        assert bare.get(kind, name) is None


# --- the same again


@pytest.mark.thorough("it compiles steward twice")
def test_release_is_reproducible(release, tmp_path):
    """Built again from another clone, with another umask, time zone and language, and with a key."""
    key = tmp_path / "release.pem"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", key], check=True,
                   capture_output=True)
    again = tmp_path / "again"
    releases.build_elsewhere(tmp_path / "clone", again, "--image", IMAGE, "--key", key)
    assert {p.name for p in again.iterdir()} == {p.name for p in release.iterdir()} | {"SHA256SUMS.sig"}
    for path in release.iterdir():
        assert path.read_bytes() == (again / path.name).read_bytes(), path.name
    secret = "".join(key.read_text("ascii").splitlines()[1:-1]).encode()
    for path in again.iterdir():
        assert secret not in path.read_bytes(), path.name
    public = tmp_path / "release.pub"
    subprocess.run(["openssl", "pkey", "-in", key, "-pubout", "-out", public], check=True)
    command, = [line for line in "".join(readme.blocks("sh", "docs/operations.md")).splitlines()
                if line.startswith("openssl pkeyutl -verify")]
    command = command.replace("release.pub", str(public))

    def verified():
        return subprocess.run(command, shell=True, cwd=again, capture_output=True, check=False).returncode
    assert verified() == 0
    with open(again / "SHA256SUMS", "a", encoding="ascii") as file:
        file.write("\n")
    assert verified() != 0
