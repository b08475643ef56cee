/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds/common/pod.h"

#include "base/util.h"
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
            stw_json_is(stw_json_get(c, "reason"), STW_POD_REASON_NODE)) {
            *ret_message = stw_json_get(c, "message");
            return true;
        }
    }
    return false;
}

enum stw_pod_wait stw_pod_wait_of(struct stw_json waiting)
{
    static const struct {
        const char *reason;
        enum stw_pod_wait wait;
    } all[] = {
        {"ContainerCreating", STW_POD_STARTS},
        {"PodInitializing", STW_POD_STARTS},
        {"ErrImagePull", STW_POD_PULLS},
        {STW_POD_REASON_IMAGE, STW_POD_PULLS},
        {"InvalidImageName", STW_POD_NO_IMAGE},
        {"ErrImageNeverPull", STW_POD_NO_IMAGE},
        {"ImageInspectError", STW_POD_NO_IMAGE},
        {STW_POD_REASON_CRASH, STW_POD_CRASHES},
        {"RunContainerError", STW_POD_NO_CONTAINER},
        {"CreateContainerError", STW_POD_NO_CONTAINER},
        {"CreateContainerConfigError", STW_POD_NO_CONTAINER},
    };
    struct stw_json reason = stw_json_get(waiting, "reason");
    for (size_t i = 0; i < STW_COUNT(all); i++)
        if (stw_json_is(reason, all[i].reason))
            return all[i].wait;
    return stw_json_there(reason) ? STW_POD_OTHER : STW_POD_NO_WAIT;
}

const char *stw_pod_crash_reason(struct stw_json ended)
{
    return stw_json_is(stw_json_get(ended, "reason"), STW_POD_REASON_MEMORY) ? STW_POD_REASON_MEMORY
                                                                             : STW_POD_REASON_CRASH;
}

void stw_pod_reason(struct stw_json container, char out[STW_POD_REASON_MAX])
{
    struct stw_json waiting = stw_json_path(container, "state.waiting");
    enum stw_pod_wait wait = stw_pod_wait_of(waiting);
    char message[300];
    stw_json_cut(stw_json_get(waiting, "message"), message, sizeof(message));
    stw_pod_text(stw_json_get(waiting, "reason"), out, STW_POD_REASON_MAX);
    if (wait == STW_POD_PULLS)
        stw_format(out, STW_POD_REASON_MAX, STW_POD_REASON_IMAGE);
    else if (wait == STW_POD_CRASHES)
        stw_format(out, STW_POD_REASON_MAX, "%s",
                   stw_pod_crash_reason(stw_json_path(container, "lastState.terminated")));
    else if (strstr(message, "ecret") &&
             (strstr(message, "not found") || strstr(message, "couldn't find key")))
        stw_format(out, STW_POD_REASON_MAX, STW_POD_REASON_SECRET);
}

json_t *stw_pod_certificate_items(const char *prefix, bool common)
{
    char cert[64], key[64], ca[64];
    stw_format(cert, sizeof(cert), "%s.crt", prefix);
    stw_format(key, sizeof(key), "%s.key", prefix);
    stw_format(ca, sizeof(ca), "%s-ca.crt", prefix);
    return json_pack("[{s:s,s:s},{s:s,s:s},{s:s,s:s}]", "key", common ? "tls.crt" : cert, "path",
                     cert, "key", common ? "tls.key" : key, "path", key, "key",
                     common ? "ca.crt" : ca, "path", ca);
}
