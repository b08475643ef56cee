/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/own_image.h"

#include "base/util.h"
#include "kinds/kinds.h"
#include "operator/installed/remote.h"

#include <unistd.h>

#define CONTAINER "manager" /* as in config/manager; others may be injected */
#define IMAGE_MAX 1024
#define REQUEST_MS 5000
#define PAUSE_MS 250

static struct stw_json find_container(struct stw_json containers)
{
    struct stw_json key, one;
    stw_json_foreach (containers, key, one)
        if (stw_json_is(stw_json_get(one, "name"), CONTAINER))
            return one;
    return stw_json_at(containers, 0);
}

static int read_image_of_pod(const struct stw_remote *remote, const char *ns, const char *pod,
                             char **ret, struct stw_error *err)
{
    char image[IMAGE_MAX];
    stw_autoanswer struct stw_answer answer = {0};
    if (stw_remote_get(remote, &stw_res_pod, ns, pod, &answer, err) != 0)
        return -1;
    struct stw_json container = find_container(stw_json_path(answer.root, "spec.containers"));
    if (stw_json_strcpy(stw_json_get(container, "image"), image, sizeof(image)) != 0 || !*image)
        return stw_fail(err, STW_ERR_INVALID, "pod %s/%s names no image", ns, pod);
    *ret = strdup(image);
    return *ret ? 0 : stw_fail_memory(err);
}

static bool is_transient_error(enum stw_err code)
{
    return code == STW_ERR_UNAVAILABLE || code == STW_ERR_TIMEOUT || code == STW_ERR_THROTTLED;
}

int stw_own_image(struct stw_client *client, const char *ns, const char *pod, uint32_t patience_ms,
                  char **ret, struct stw_error *err)
{
    const struct stw_remote remote = {
        .op = &stw_operator_steward, .client = client, .timeout_ms = REQUEST_MS};
    uint64_t end = stw_now_ms(&stw_clock_system) + patience_ms;
    while (read_image_of_pod(&remote, ns, pod, ret, err) != 0) {
        if (!is_transient_error(err->code) || stw_now_ms(&stw_clock_system) >= end)
            return -1;
        (void)usleep(PAUSE_MS * 1000);
    }
    return 0;
}
