/* SPDX-License-Identifier: Apache-2.0
 *
 * For subcommands that access a cluster once: an API client, and responses as JSON documents. */
#ifndef STW_OPERATOR_REMOTE_H
#define STW_OPERATOR_REMOTE_H

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"
#include "base/operator.h"
#include "base/util.h"
#include "kube/client.h"
#include "kube/kubeconfig.h"
#include "operator/main/names.h"

#include <stdbool.h>
#include <stdint.h>

struct stw_remote {
    const struct stw_operator *op; /* set it before stw_remote_open */
    struct stw_kubeconfig *kubeconfig;
    struct stw_client *client;
    uint32_t timeout_ms;  /* per request; 0: the client's default */
    uint64_t deadline_ms; /* overall, on the monotonic clock; 0: none */
};

/* The options --kubeconfig and --context, with members of the same names. */
#define STW_REMOTE_FLAGS(type)                                                                     \
    {.name = "kubeconfig",                                                                         \
     .arg = "FILE",                                                                                \
     .offset = offsetof(type, kubeconfig),                                                         \
     .help = "how to reach the API server (default: $KUBECONFIG, the pod's ServiceAccount,\n"      \
             "~/.kube/config, in this order)"},                                                    \
    {                                                                                              \
        .name = "context", .arg = "NAME", .offset = offsetof(type, context),                       \
        .help = "context of the kubeconfig (default: its current-context)"                         \
    }

/* The option --namespace of commands that look at an installation, with a member `ns`. */
#define STW_FLAG_INSTALLED_IN(type)                                                                \
    {                                                                                              \
        .name = "namespace", .letter = 'n', .arg = "NAME", .def = STW_DEFAULT_NAMESPACE,           \
        .offset = offsetof(type, ns), .help = "where {operator} is installed"                      \
    }

/* `r` must be zeroed except `op`; call done() in any case. `path` and `context` as in --kubeconfig and
 * --context. Sets the log to errors only, because these programs print their own results. */
int stw_remote_open(struct stw_remote *r, const char *path, const char *context,
                    struct stw_error *err) STW_MUST_CHECK;
/* The same with r->kubeconfig, which the caller has made and which is freed by done(). */
int stw_remote_connect(struct stw_remote *r, struct stw_error *err) STW_MUST_CHECK;
void stw_remote_done(struct stw_remote *r);
#define stw_autoremote __attribute__((cleanup(stw_remote_done)))

/* A response. Zero-initialise; call done() in any case. */
struct stw_answer {
    struct stw_buf text; /* secret if the request was */
    struct stw_json_doc doc;
    struct stw_json root;
};
void stw_answer_done(struct stw_answer *a);
#define stw_autoanswer __attribute__((cleanup(stw_answer_done)))

/* GET of an object, or of a collection for a NULL name. Frees the previous contents of *ret. */
int stw_remote_get(const struct stw_remote *r, const struct stw_resource *resource, const char *ns,
                   const char *name, struct stw_answer *ret, struct stw_error *err) STW_MUST_CHECK;
/* Any request; the response must be JSON. */
int stw_remote_do(const struct stw_remote *r, const struct stw_request *req, struct stw_answer *ret,
                  struct stw_error *err) STW_MUST_CHECK;

#endif
