/* SPDX-License-Identifier: Apache-2.0
 *
 * The API server of <steward/test.h> as a program, for a comparison with a real one
 * (tests/contract/test_memory_server.py): prints its URL and serves until standard input ends. */
#include "kube/resource.h"
#include "testing/server.h"

#include <stdio.h>

static const struct stw_resource thing = {"memory.steward.dev", "v1", "Thing", "things", true};

static const struct stw_resource *const resources[] = {&stw_res_configmap,
                                                       &stw_res_secret,
                                                       &stw_res_service,
                                                       &stw_res_deployment,
                                                       &stw_res_lease,
                                                       &stw_res_namespace,
                                                       &stw_res_pod,
                                                       &stw_res_event,
                                                       &thing,
                                                       NULL};

int main(void)
{
    struct stw_test_server *s;
    struct stw_error err = {0};
    const struct stw_test_server_config config = {.resources = resources};
    if (stw_test_server_start(&config, &s, &err) != 0) {
        fprintf(stderr, "memory_server: %s\n", err.text);
        return 1;
    }
    printf("%s\n", stw_test_server_url(s));
    (void)fflush(stdout);
    while (getchar() != EOF)
        continue;
    stw_test_server_stop(s);
    return 0;
}
