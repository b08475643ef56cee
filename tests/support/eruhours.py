# SPDX-License-Identifier: Apache-2.0
"""Erus with spec.onlyIfChanged in tests: workloads that read something, and one instant after the
other."""

import datetime

from . import eru

INPUTS = "mtsre.meitu.com/inputs-hash"
HOUR = datetime.timedelta(hours=1)


def reading(workload, configmap=None, secret=None):
    """The workload, whose pods read a ConfigMap in a volume and a Secret in their environment."""
    pod = workload["spec"]["template"]["spec"]
    if configmap:
        pod["volumes"] = [{"name": "files", "configMap": {"name": configmap}}]
    if secret:
        pod["containers"][0]["env"] = [{"name": "TOKEN", "valueFrom": {
            "secretKeyRef": {"name": secret, "key": "token"}}}]
    return workload


def write(cluster, namespace, kind, name, value):
    """Creates a ConfigMap or Secret, or changes it."""
    field = "stringData" if kind == "Secret" else "data"
    cluster.apply({"apiVersion": "v1", "kind": kind, field: {"token": value},
                   "metadata": {"name": name, "namespace": namespace}})


def digest(cluster, namespace, name="web", kind="deployment"):
    """What steward has recorded beside the stamp, or None."""
    template = cluster.get(kind, name, namespace)["spec"]["template"]
    return template["metadata"].get("annotations", {}).get(INPUTS)


class Hours:
    """An Eru with an instant in each hour, and steward's clock that leaps to them."""

    def __init__(self, cluster, clock, obj):
        _, self.instant = eru.next_minute()
        self.cluster, self.clock = cluster, clock
        self.name, self.namespace = obj["metadata"]["name"], obj["metadata"]["namespace"]
        obj["spec"] |= {"enabled": True, "onlyIfChanged": True,
                        "schedule": f"{self.instant.minute} * * * *"}
        cluster.apply(obj)
        eru.wait_eru(cluster, self.name, self.namespace, lambda s: s.get("nextScheduleTime"))

    def leap(self):
        """Sets the clock to just before the next instant."""
        self.clock.leap(self.instant, eru.SOON)

    def ended(self):
        """Waits for the result of this instant; returns (reason, status)."""
        at = eru.iso(self.instant)
        self.instant += HOUR
        status = eru.wait_eru(self.cluster, self.name, self.namespace,
                              lambda s: s.get("history", [{}])[0].get("instant") == at
                              and "currentRollout" not in s, 120)["status"]
        assert status["lastScheduleTime"] == at
        return status["history"][0]["reason"], status

    def next(self):
        """The reason of the result of the next instant."""
        self.leap()
        return self.ended()[0]
