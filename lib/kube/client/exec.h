/* SPDX-License-Identifier: Apache-2.0
 *
 * Credential plugins of kubeconfigs: `exec`, by client.authentication.k8s.io/v1 and v1beta1.  Only for
 * commands that a person runs.  What a plugin prints is a secret: it is wiped after use, and no
 * error or log quotes it. */
#ifndef STW_KUBE_EXEC_H
#define STW_KUBE_EXEC_H

#include "base/error.h"
#include "base/json.h"
#include "base/util.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum stw_exec_mode { STW_EXEC_NEVER, STW_EXEC_IF_AVAILABLE, STW_EXEC_ALWAYS };

/* How to run a plugin.  Never changes once it was read, and is shared by copies of a config. */
struct stw_exec {
    atomic_uint refs;
    char *who;         /* "FILE: user \"NAME\"", for errors */
    char *command;     /* an absolute path, or a name that is searched in $PATH */
    char *api_version; /* "client.authentication.k8s.io/v1" */
    char **args;       /* ended by NULL, with the command in front */
    char **env;        /* "NAME=value", ended by NULL */
    char *cluster;     /* spec.cluster of KUBERNETES_EXEC_INFO as JSON, or NULL */
    char *hint;        /* how to install it, or "" */
    enum stw_exec_mode mode;
    uint32_t timeout_ms; /* 0: the default, which is longer where a person may be asked */
};

/* What a plugin returned. */
struct stw_exec_answer {
    char *token;              /* or NULL */
    char *cert_pem, *key_pem; /* both or neither */
    int64_t expires_us;       /* wall clock; INT64_MAX: never */
};
void stw_exec_answer_done(struct stw_exec_answer *a); /* wipes */

/* Of the cluster, for a plugin that wants to know it.  Strings are borrowed and may be NULL. */
struct stw_exec_cluster {
    const char *server, *tls_server_name, *ca_pem, *proxy_url;
    bool insecure;
    struct stw_json node; /* of the kubeconfig: of its `extensions` one may be for plugins */
};

/* Reads users[].user.exec.  `dir` is the base of a relative command. */
int stw_exec_parse(struct stw_json exec, const struct stw_exec_cluster *cluster, const char *who,
                   const char *dir, struct stw_exec **ret, struct stw_error *err) STW_MUST_CHECK;
struct stw_exec *stw_exec_ref(struct stw_exec *e); /* NULL stays NULL */
void stw_exec_unref(struct stw_exec *e);

/* Runs the plugin.  Blocks until it has ended, or until its deadline. */
int stw_exec_run(const struct stw_exec *e, struct stw_exec_answer *ret,
                 struct stw_error *err) STW_MUST_CHECK;

#endif
