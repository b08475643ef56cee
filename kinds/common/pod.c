/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds/common/pod.h"

#include "controller/condition.h"

void stw_pod_text(struct stw_json string, char *out, size_t size)
{
    stw_json_cut(string, out, size);
    stw_message_clean(out, size - 1);
}

bool stw_pod_ready(struct stw_json pod)
{
    struct stw_json key, c;
    stw_json_foreach (stw_json_path(pod, "status.conditions"), key, c) {
        if (stw_json_is(stw_json_get(c, "type"), "Ready"))
            return stw_json_is(stw_json_get(c, "status"), "True");
    }
    return false;
}

bool stw_pod_unschedulable(struct stw_json pod, struct stw_json *ret_message)
{
    struct stw_json key, c;
    stw_json_foreach (stw_json_path(pod, "status.conditions"), key, c) {
        if (stw_json_is(stw_json_get(c, "type"), "PodScheduled") &&
            stw_json_is(stw_json_get(c, "reason"), "Unschedulable")) {
            *ret_message = stw_json_get(c, "message");
            return true;
        }
    }
    return false;
}
