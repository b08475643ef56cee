# SPDX-License-Identifier: Apache-2.0
"""A tenant with many objects does not delay the others."""

from support import myweb

MANY = 600


def test_many_objects_of_one_namespace_hold_up_no_other(installed, namespace, run_steward):
    """All are queued when steward starts; that of the other namespace is not the last."""
    many = f"a-{namespace}"  # listed first
    installed.create_namespace(many)
    path = f"/apis/operator.k8s-summit.org/v1/namespaces/{many}/mywebs"
    for number in range(MANY):
        assert installed.api.call("POST", path, myweb.manifest(f"web-{number}", many))[0] == 201
    installed.apply(myweb.manifest("web", namespace))
    one = run_steward()
    installed.wait_for(myweb.KIND, "web", namespace, lambda web: web.get("status", {}).get("conditions"))
    left = one.metric("workqueue_depth", controller="myweb")
    assert one.stop() == 0, one.log_tail()
    installed.api.call("DELETE", path)
    installed.delete_namespace(many)
    assert left > MANY / 2
