# SPDX-License-Identifier: Apache-2.0
"""onlyIfChanged and --image-registries: an instant restarts what runs a tag that has moved."""

import pytest
from support import eru, faults, registrydouble, wait
from support.eruhours import Hours, digest, reading, write

pytestmark = pytest.mark.usefixtures("no_webhooks", "kubelet")

A, B, C = ("sha256:" + letter * 64 for letter in "abc")


@pytest.fixture(name="double")
def make_double():
    """A registry that the test plays with one tag."""
    one = registrydouble.Double({"team/app:1": A})
    yield one
    one.close()


def pulling(workload, image):
    """The workload, whose pods pull this image whenever they start."""
    container = workload["spec"]["template"]["spec"]["containers"][0]
    container |= {"image": image, "imagePullPolicy": "Always"}
    return workload


def begin(cluster, namespace, clock, image, **more):
    """A Deployment with this image, its Eru, and the first restart."""
    cluster.apply(reading(pulling(eru.deployment("web", namespace), image), **more))
    eru.wait_available(cluster, "web", namespace)
    hours = Hours(cluster, clock, eru.manifest("web", namespace))
    assert hours.next() == "RolloutSucceeded"
    return hours


@pytest.mark.skipif(not registrydouble.program(), reason="needs docker-registry")
@pytest.mark.oldest("an annotation of the pod template")
def test_moved_tag_triggers_the_restart(run_steward, installed, namespace, clock, tmp_path):
    """In a real registry, to which images are pushed; and what happens while it is down."""
    real = registrydouble.Real(tmp_path)
    run_steward(f"--image-registries=http://{real.host}", clock=clock)
    with real.serve():
        first = real.push("team/app", "latest", b"one")
        hours = begin(installed, namespace, clock, f"{real.host}/team/app")
        objects, images = digest(installed, namespace).split("-")
        assert len(objects) == len(images) == 32
        assert hours.next() == "SkippedNothingChanged"
        assert real.push("team/app", "latest", b"two") != first
        assert hours.next() == "RolloutSucceeded"
        assert digest(installed, namespace).split("-") != [objects, images]
        assert hours.next() == "SkippedNothingChanged"
        assert eru.revision(installed, "web", namespace) == 3
    assert hours.next() == "SkippedImageDigestUnknown"
    message = installed.wait_event("web", namespace, "SkippedImageDigestUnknown")
    assert f"team/app:latest: registry {real.host} cannot be reached" in message
    with real.serve():
        assert hours.next() == "SkippedNothingChanged"
        real.push("team/app", "latest", b"three")
        assert hours.next() == "RolloutSucceeded"
    assert eru.revision(installed, "web", namespace) == 4


@pytest.mark.oldest("an annotation of the pod template")
def test_registry_outage_does_not_hide_changes(run_steward, installed, namespace, clock, double):
    """ConfigMaps are compared nevertheless, and a tag that moved meanwhile counts afterwards."""
    run_steward(f"--image-registries=http://{double.host}", clock=clock)
    write(installed, namespace, "ConfigMap", "files", "a")
    hours = begin(installed, namespace, clock, f"{double.host}/team/app:1", configmap="files")
    assert double.heads() == ["team/app:1"]
    double.fault = lambda handler: handler.reply(503) or True
    assert hours.next() == "SkippedImageDigestUnknown"
    write(installed, namespace, "ConfigMap", "files", "b")
    before = digest(installed, namespace).split("-")
    assert hours.next() == "RolloutSucceeded"
    after = digest(installed, namespace).split("-")
    assert after[0] != before[0] and after[1] == before[1]
    message = installed.wait_event("web", namespace, "ImageDigestUnknown")
    assert f"registry {double.host} answers 503" in message
    double.fault = lambda handler: False
    assert hours.next() == "SkippedNothingChanged"
    double.tags["team/app:1"] = B
    assert hours.next() == "RolloutSucceeded"
    assert hours.next() == "SkippedNothingChanged"


@pytest.mark.oldest("an annotation of the pod template")
def test_unlisted_registries_are_not_contacted(run_steward, installed, namespace, clock, double):
    """Registries that are not listed, images with a digest, and pods that would not pull a newer
    one.  No connection is made to a host that a tenant names."""
    other = registrydouble.Double({"team/app:1": A})
    run_steward(f"--image-registries=http://{double.host}", clock=clock)
    write(installed, namespace, "ConfigMap", "files", "a")
    workload = reading(pulling(eru.deployment("web", namespace), f"{other.host}/team/app:1"),
                       configmap="files")
    pod = workload["spec"]["template"]["spec"]
    pod["initContainers"] = [
        {"name": f"i{i}", "image": image, "imagePullPolicy": policy} for i, (image, policy) in
        enumerate([(f"{double.host}/team/app@{A}", "Always"),
                   (f"{double.host}/team/app:1", "IfNotPresent"),
                   ("team/app:1", "Always"), (f"{double.host}@{other.host}/a", "Always"),
                   (f"localhost:{double.server_address[1]}/team/app:1", "Always")])]
    installed.apply(workload)
    eru.wait_available(installed, "web", namespace)
    hours = Hours(installed, clock, eru.manifest("web", namespace))
    assert hours.next() == "RolloutSucceeded"
    assert "-" not in digest(installed, namespace)
    other.tags["team/app:1"] = B
    assert hours.next() == "SkippedNothingChanged"
    assert (double.connections, other.connections) == (0, 0)
    other.close()


def test_registries_are_not_contacted_by_default(run_steward, installed, namespace, clock, double):
    """Without the option no registry is asked."""
    run_steward(clock=clock)
    write(installed, namespace, "ConfigMap", "files", "a")
    hours = begin(installed, namespace, clock, f"{double.host}/team/app:1", configmap="files")
    double.tags["team/app:1"] = B
    assert hours.next() == "SkippedNothingChanged"
    assert double.connections == 0


def test_shared_image_is_looked_up_once(run_steward, installed, namespace, clock, double):
    """They cost one question an instant."""
    run_steward(f"--image-registries=http://{double.host}", clock=clock)
    names = [f"d{i:02d}" for i in range(12)]
    for name in names:
        installed.apply(pulling(eru.labelled(name, namespace), f"{double.host}/team/app:1"))
    for name in names:
        eru.wait_available(installed, name, namespace)
    hours = Hours(installed, clock, eru.selecting("nightly", namespace))
    assert hours.next() == "RolloutSucceeded"
    assert double.heads() == ["team/app:1"]
    assert hours.next() == "SkippedNothingChanged"
    assert double.heads() == ["team/app:1"] * 2
    assert len({digest(installed, namespace, name) for name in names}) == 1


@pytest.mark.oldest("preconditions of server-side apply")
def test_kill_after_restart_loses_no_moved_tag(run_steward, installed, namespace, clock, double, tmp_path):
    """By SIGKILL: one restart for the tag that moved before, and one for the move after it."""
    flag = f"--image-registries=http://{double.host}"
    one = run_steward(flag, clock=clock)
    hours = begin(installed, namespace, clock, f"{double.host}/team/app:1")
    assert one.stop() == 0, one.log_tail()
    double.tags["team/app:1"] = B
    hours.leap()
    log = tmp_path / "faults.log"
    one = run_steward(flag, ready=False, binary=faults.binary(), clock=clock,
                      env={"STEWARD_FAULT_AT": "1", "STEWARD_FAULT_LOG": str(log)})
    wait.until("its end", lambda: not one.running(), 60)
    assert log.read_text().split()[-1] == "stamp"
    double.tags["team/app:1"] = C
    run_steward(flag, clock=clock)
    assert hours.ended()[0] == "RolloutSucceeded"
    assert eru.revision(installed, "web", namespace) == 3
    assert hours.next() == "RolloutSucceeded"
    assert eru.revision(installed, "web", namespace) == 4
    assert hours.next() == "SkippedNothingChanged"
