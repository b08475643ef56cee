/* SPDX-License-Identifier: Apache-2.0
 *
 * For subcommands that look at a cluster once: an API client, and answers as documents. */
#ifndef STW_CMD_REMOTE_H
#define STW_CMD_REMOTE_H

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"
#include "kube/client.h"
#include "kube/kubeconfig.h"

#include <stdbool.h>
#include <stdint.h>

struct stw_remote {
    struct stw_kubeconfig *kubeconfig;
    struct stw_client *client;
    uint32_t timeout_ms;  /* of one request; 0: the client's */
    uint64_t deadline_ms; /* of all, by the system's monotonic clock; 0: none */
};

/* The rows of --kubeconfig and --context, whose members are called so. */
#define STW_REMOTE_FLAGS(type)                                                                     \
    {.name = "kubeconfig",                                                                         \
     .arg = "FILE",                                                                                \
     .offset = offsetof(type, kubeconfig),                                                         \
     .help = "how to reach the API server; without it $KUBECONFIG, the pod's ServiceAccount,\n"    \
             "~/.kube/config, in this order"},                                                     \
    {                                                                                              \
        .name = "context", .arg = "NAME", .offset = offsetof(type, context),                       \
        .help = "context of the kubeconfig; without it its current-context"                        \
    }

/* Zeroed `r`; done() in any case.  `path` and `context` as --kubeconfig and --context.  The log
 * goes quiet but for errors, since these programs say themselves what they find. */
int stw_remote_open(struct stw_remote *r, const char *path, const char *context,
                    struct stw_error *err);
void stw_remote_done(struct stw_remote *r);
#define stw_autoremote __attribute__((cleanup(stw_remote_done)))

/* An answer: zero-initialised, done() in any case. */
struct stw_answer {
    struct stw_buf text; /* secret, if so asked */
    struct stw_json_doc doc;
    struct stw_json root;
};
void stw_answer_done(struct stw_answer *a);
#define stw_autoanswer __attribute__((cleanup(stw_answer_done)))

/* GET of an object, or of a collection for a NULL name.  What it held before goes. */
int stw_remote_get(const struct stw_remote *r, const struct stw_resource *resource, const char *ns,
                   const char *name, struct stw_answer *ret, struct stw_error *err);
/* Any request; the answer must be JSON. */
int stw_remote_do(const struct stw_remote *r, const struct stw_request *req, struct stw_answer *ret,
                  struct stw_error *err);

#endif
