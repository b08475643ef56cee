# SPDX-License-Identifier: Apache-2.0
"""examples/cronjob-lite: Jobs on a schedule, by a clock that leaps.

There is no node, and the tests play the Job controller (spec.managedBy keeps the real one away)."""

import datetime
import itertools

import pytest

from support import clock as clocks
from support import wait
from support.cluster import condition, is_ready

KIND = "cronjobs.batch.tutorial.example.org"
SCHEDULED_AT = "batch.tutorial.example.org/scheduled-at"
HOUR = datetime.timedelta(hours=1)
_numbers = itertools.count(1)


def cronjob(name, namespace, template=None, **spec):
    """A CronJob that is due every hour."""
    job = {"managedBy": "tests.example.org/player",
           "template": {"spec": {"restartPolicy": "Never",
                                 "containers": [{"name": "main", "image": "none"}]}}}
    return {"apiVersion": "batch.tutorial.example.org/v1", "kind": "CronJob",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"schedule": "0 * * * *", "jobTemplate": {"spec": job, **(template or {})},
                     **spec}}


@pytest.fixture(scope="module")
def clock(tmp_path_factory):
    """A support.clock.Clock: that of the operator."""
    if clocks.library() is None:
        pytest.skip("libfaketime is not installed (scripts/bootstrap test)")
    return clocks.Clock(tmp_path_factory.mktemp("clock"))


@pytest.fixture(scope="module")
def operator(start_example, clock, cluster):
    """The operator, by this clock."""
    if cluster.minor() < 32:
        pytest.skip("Jobs have no spec.managedBy: the Job controller would take part")
    return start_example("cronjob-lite", clock=clock)


class Play:
    """What a test does with the CronJobs of its namespace."""

    def __init__(self, cluster, clock, namespace):
        self.cluster, self.clock, self.namespace = cluster, clock, namespace

    def apply(self, name, **spec):
        """Creates one, and waits until the operator has seen it."""
        self.cluster.apply(cronjob(name, self.namespace, **spec))
        return self.wait(name, lambda o: condition(o, "Scheduled"))

    def wait(self, name, check, seconds=30):
        """Waits for what `check` says about a CronJob."""
        return self.cluster.wait_for(KIND, name, self.namespace, check, seconds)

    def wait_reason(self, name, reason):
        """Waits for this reason of Scheduled."""
        return self.wait(name, lambda o: (condition(o, "Scheduled") or {}).get("reason") == reason)

    def wake(self):
        """Lets the operator look at once: it looks at its clock only from time to time."""
        for one in self.cluster.list(KIND, self.namespace):
            template = one["spec"]["jobTemplate"]
            notes = {**template.get("metadata", {}).get("annotations", {}), "wake": str(next(_numbers))}
            self.cluster.patch(KIND, one["metadata"]["name"], self.namespace,
                               {"spec": {"jobTemplate": {"metadata": {"annotations": notes}}}})

    def leap(self, seconds=0):
        """Lets the clock leap to the next full hour, and some seconds more; returns that hour."""
        instant = hour_of(self.clock.now()) + HOUR
        self.clock.leap(instant + datetime.timedelta(seconds=seconds), 0)
        self.clock.wait_until(instant + datetime.timedelta(seconds=1))
        self.wake()
        return instant

    def jobs(self, name):
        """The Jobs of a CronJob by name, the oldest first."""
        found = {j["metadata"]["name"]: j for j in self.cluster.list("jobs.batch", self.namespace)
                 if j["metadata"]["name"].rpartition("-")[0] == name}
        return dict(sorted(found.items()))

    def wait_job(self, name, instant):
        """Waits until the Job of an instant is there and reported; returns it."""
        job = self.cluster.wait_for("jobs.batch", f"{name}-{int(instant.timestamp())}",
                                    self.namespace, lambda o: True, 30)
        self.wait(name, lambda o: o["status"].get("lastScheduleTime") == iso(instant))
        return job

    def end(self, job, failed=False):
        """Does what the Job controller does when a Job ends."""
        now = job["metadata"]["creationTimestamp"]
        types = ("FailureTarget", "Failed") if failed else ("SuccessCriteriaMet", "Complete")
        done = {} if failed else {"completionTime": now, "succeeded": 1}
        self.cluster.patch(
            "jobs.batch", job["metadata"]["name"], self.namespace, subresource="status",
            patch={"status": {"startTime": now, **done, "conditions": [
                {"type": t, "status": "True", "reason": "Played", "message": "",
                 "lastTransitionTime": now, "lastProbeTime": now} for t in types]}})


def hour_of(instant):
    """When its hour began."""
    return instant.replace(minute=0, second=0, microsecond=0)


def iso(instant):
    """As in a status."""
    return instant.strftime("%Y-%m-%dT%H:%M:%SZ")


@pytest.fixture
def play(cluster, operator, clock, home):
    """A Play, at the true time: objects are created at the API server's.  No true hour begins before the
    first leap, so that the instants are those of the leaps."""
    assert operator.running()
    clock.set(0)
    start = clock.now() + datetime.timedelta(seconds=2)  # the operator has read it
    next_hour = hour_of(start) + HOUR
    clock.wait_until(start if next_hour - start > datetime.timedelta(seconds=40) else next_hour)
    one = Play(cluster, clock, home)
    yield one
    cluster.delete_all(KIND, home)
    cluster.delete_all("jobs.batch", home, wait_gone=False)


def test_rules_and_defaults_apply(play, operator, cluster, home):
    """Rules and defaults, from the API server."""
    bad = cronjob("bad", home, schedule="61 * * * *")
    operator.admit(cronjob("good", home), bad, "field 1 (minute)")
    try:
        for spec, text in (({"schedule": "0 0 31 2 *"}, "never matches"),
                           ({"concurrencyPolicy": "Maybe"}, "Unsupported value"),
                           ({"failedJobsHistoryLimit": -1}, "failedJobsHistoryLimit"),
                           ({"jobTemplate": {}}, "spec.jobTemplate.spec")):
            reply = cluster.apply(cronjob("bad", home) | {"spec": {
                **cronjob("bad", home)["spec"], **spec}}, dry_run=True, check=False)
            assert reply.returncode != 0 and text in reply.stderr, (spec, reply.stderr)
        reply = cluster.apply(cronjob("n" * 53, home), dry_run=True, check=False)
        assert reply.returncode != 0 and "52" in reply.stderr, reply.stderr
        assert cluster.apply(cronjob("n" * 52, home), dry_run=True).returncode == 0
        spec = cluster.apply(cronjob("good", home), dry_run=True).object["spec"]
        assert (spec["concurrencyPolicy"], spec["suspend"], spec["successfulJobsHistoryLimit"],
                spec["failedJobsHistoryLimit"]) == ("Allow", False, 3, 1)
    finally:
        operator.forget_webhooks()


def test_job_is_created_at_its_instant(play, cluster, home):
    """Name, owner and annotation are the operator's: those of the template are ignored."""
    made = play.apply("a", template={"metadata": {
        "name": "other", "namespace": "kube-system", "labels": {"team": "x"},
        "annotations": {"note": "y", SCHEDULED_AT: "2099-01-01T00:00:00Z"},
        "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "y"}]}})
    assert condition(made, "Scheduled")["reason"] == "Waiting"
    assert play.jobs("a") == {}
    instant = play.leap()
    job = play.wait_job("a", instant)
    about = job["metadata"]
    assert about["annotations"][SCHEDULED_AT] == iso(instant)
    assert about["annotations"]["note"] == "y" and about["labels"]["team"] == "x"
    [owner] = about["ownerReferences"]
    assert owner["uid"] == made["metadata"]["uid"] and owner["controller"] is True
    found = play.wait("a", lambda o: o["status"].get("active"))
    assert found["status"]["active"] == [{"name": about["name"], "uid": about["uid"]}]
    assert is_ready(found)
    cluster.wait_event("a", home, "SuccessfulCreate")
    play.end(job)
    play.wait("a", lambda o: o["status"]["active"] == [])
    play.wake()
    assert list(play.jobs("a")) == [about["name"]]


def test_concurrency_policy_is_applied(play):
    """While the first Job runs: Allow starts another, Forbid waits for its end, Replace deletes it."""
    for policy in ("Allow", "Forbid", "Replace"):
        play.apply(policy.lower(), concurrencyPolicy=policy)
    first = play.leap()
    jobs = {name: play.wait_job(name, first) for name in ("allow", "forbid", "replace")}
    second = play.leap()
    play.wait_job("allow", second)
    assert len(play.jobs("allow")) == 2
    play.wait_job("replace", second)
    wait.until("the first one's end", lambda: len(play.jobs("replace")) == 1)
    play.wait_reason("forbid", "JobActive")
    assert list(play.jobs("forbid")) == [jobs["forbid"]["metadata"]["name"]]
    play.end(jobs["forbid"])
    play.wait_job("forbid", second)


def test_history_limit_keeps_the_latest_jobs(play):
    """Of the Jobs that have ended the latest are kept, by their result; those that run all are."""
    play.apply("a", successfulJobsHistoryLimit=1, failedJobsHistoryLimit=1)
    names = []
    for failed in (True, False, True, False):
        job = play.wait_job("a", play.leap())
        names.append(job["metadata"]["name"])
        play.end(job, failed)
    wait.until("two Jobs", lambda: list(play.jobs("a")) == names[2:])
    running = play.wait_job("a", play.leap())
    play.cluster.patch(KIND, "a", play.namespace, {"spec": {
        "successfulJobsHistoryLimit": 0, "failedJobsHistoryLimit": 0}})
    wait.until("one Job", lambda: list(play.jobs("a")) == [running["metadata"]["name"]])
    play.end(running)
    wait.until("no Job", lambda: play.jobs("a") == {})
    play.wake()
    assert wait.stays("no Job again", lambda: play.jobs("a") == {}) is not False


def test_suspended_schedule_runs_only_the_latest(play):
    """No Job while suspended; then that of the latest instant, and only that."""
    play.apply("a", suspend=True)
    play.leap()
    play.wait_reason("a", "Suspended")
    last = play.leap()
    play.wait_reason("a", "Suspended")
    assert play.jobs("a") == {}
    play.cluster.patch(KIND, "a", play.namespace, {"spec": {"suspend": False}})
    play.wait_job("a", last)
    assert len(play.jobs("a")) == 1


def test_missed_job_is_run_within_its_deadline(play, operator, clock):
    """The last Job that was missed is made up for, unless its deadline has passed."""
    play.apply("strict", startingDeadlineSeconds=10)
    play.apply("patient")
    assert operator.stop() == 0
    play.leap()
    last = play.leap(20)
    assert clock.now() > last
    operator.start()
    play.wait_job("patient", last)
    play.wait_reason("strict", "DeadlineMissed")
    assert play.jobs("strict") == {} and len(play.jobs("patient")) == 1


def test_job_is_created_once_after_a_kill(play, operator):
    """The operator dies after it has created a Job, and before the status says so."""
    play.apply("a")
    instant = play.leap()
    job = play.wait_job("a", instant)
    operator.kill()
    play.cluster.patch(KIND, "a", play.namespace, subresource="status",
                        patch={"status": {"lastScheduleTime": None}})
    operator.start()
    play.wait("a", lambda o: o["status"].get("lastScheduleTime") == iso(instant))
    assert [j["metadata"]["uid"] for j in play.jobs("a").values()] == [job["metadata"]["uid"]]


def test_foreign_job_is_not_touched(play, cluster, home):
    """A Job of another owner has the name: it is reported, and neither changed nor deleted."""
    play.apply("a", concurrencyPolicy="Replace", failedJobsHistoryLimit=0)
    at = hour_of(play.clock.now())
    foreign = []
    namesake = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "a", "namespace": home},
                "spec": {"schedule": "0 0 1 1 *", "suspend": True,
                         "jobTemplate": cronjob("a", home)["spec"]["jobTemplate"]}}
    uid = cluster.create(namesake).object["metadata"]["uid"]
    for hours in (1, 2):
        instant = at + hours * HOUR
        job = {"apiVersion": "batch/v1", "kind": "Job",
               "metadata": {"name": f"a-{int(instant.timestamp())}", "namespace": home,
                            "labels": {"app.kubernetes.io/name": "cronjob-lite"},
                            "annotations": {SCHEDULED_AT: "2099-01-01T00:00:00Z"}},
               "spec": {**cronjob("a", home)["spec"]["jobTemplate"]["spec"], "suspend": True}}
        if hours == 2:  # of the CronJob of Kubernetes with the same name
            job["metadata"]["ownerReferences"] = [
                {"apiVersion": "batch/v1", "kind": "CronJob", "name": "a", "controller": True,
                 "uid": uid}]
        foreign.append(cluster.create(job).object["metadata"])
    for one in foreign:
        play.leap()
        found = play.wait("a", lambda o, name=one["name"]:
                           condition(o, "Scheduled")["reason"] == "NameConflict" and
                           name in condition(o, "Scheduled")["message"])
        assert condition(found, "Ready")["status"] == "False"
        assert found["status"]["active"] == [] and "lastScheduleTime" not in found["status"]
        live = cluster.get("jobs.batch", one["name"], home)
        assert live["metadata"]["resourceVersion"] == one["resourceVersion"]
    play.wait_job("a", play.leap())


def test_refused_job_is_reported(play, home):
    """The template is checked by the API server: its words are in the condition."""
    play.apply("a", template={"spec": {"template": {"spec": {"containers": []}}}})
    play.leap()
    found = play.wait_reason("a", "InvalidSpec")
    assert "containers" in condition(found, "Scheduled")["message"]
    assert condition(found, "Stalled")["status"] == "True"
