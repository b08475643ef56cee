# SPDX-License-Identifier: Apache-2.0
"""A tenant with many objects does not delay the others."""

from support import incident, myweb, wait
from support.replicas import sum_of

MANY = 600


def test_many_objects_do_not_delay_other_namespaces(installed, namespace, run_steward):
    """All are queued when steward starts; that of the other namespace is not the last."""
    many = f"a-{namespace}"  # listed first
    installed.create_namespace(many)
    path = f"/apis/operator.k8s-summit.org/v1/namespaces/{many}/mywebs"
    for number in range(MANY):
        assert installed.api.call("POST", path, myweb.manifest(f"web-{number}", many))[0] == 201
    installed.apply(myweb.manifest("web", namespace))
    one = run_steward()
    installed.wait_for(myweb.KIND, "web", namespace, lambda web: web.get("status", {}).get("conditions"))
    with incident.follow("StewardQueueBacklog", installed) as runbook:
        runbook.before("")
        left = one.metrics_text()
        assert one.stop() == 0, one.log_tail()
        runbook.fires(left)
        for name in ("rest_client_request_duration_seconds_sum", "workqueue_work_duration_seconds_sum"):
            assert sum_of(left, name) > 0
        assert MANY / 2 < sum_of(left, "workqueue_depth", controller="myweb")
        installed.api.call("DELETE", path)
        installed.delete_namespace(many)
        more = run_steward("--workers=16")
        assert more.metric("controller_runtime_max_concurrent_reconciles", controller="myweb") == 16
        wait.until("the queue to be empty", lambda: not more.metric("workqueue_depth", controller="myweb"))
        runbook.ends(more.metrics_text)
