/* SPDX-License-Identifier: Apache-2.0
 *
 * Searches for a configuration: the flag, $KUBECONFIG, the pod that we run in, ~/.kube/config. */
#include "base/util.h"
#include "kube/client/exec.h"
#include "kube/config/kubeconfig_file_priv.h"
#include "kube/config/kubeconfig_priv.h"

#include <errno.h>
#include <stdio.h>
#include <strings.h>

#define FILES_MAX 16

/* --- in-cluster */

static char *in_dir(const char *dir, const char *name)
{
    char *path = NULL;
    return asprintf(&path, "%s/%s", dir, name) < 0 ? NULL : path;
}

static int fill_in_cluster(struct stw_kubeconfig *c, const char *host, const char *port,
                           const char *dir, struct stw_error *err)
{
    size_t len;
    struct stw_error ignored;
    stw_autofree char *ns_path = in_dir(dir, "namespace");
    bool v6 = strchr(host, ':') != NULL;
    c->source = strdup("in-cluster");
    c->token_path = in_dir(dir, "token");
    c->ca_path = in_dir(dir, "ca.crt");
    if (asprintf(&c->server, "https://%s%s%s:%s", v6 ? "[" : "", host, v6 ? "]" : "", port) < 0)
        c->server = NULL;
    if (!c->source || !c->token_path || !c->ca_path || !ns_path || !c->server)
        return stw_fail_memory(err);
    if (access(c->token_path, R_OK) < 0)
        return stw_fail(err, STW_ERR_INVALID,
                        "in-cluster: cannot read %s: %s (does the pod have a ServiceAccount with "
                        "automountServiceAccountToken?)",
                        c->token_path, strerror(errno));
    if (stw_read_file(c->ca_path, STW_KUBECONFIG_MAX_BYTES, &c->ca_pem, &len, err) < 0)
        return stw_error_wrap(err, "in-cluster");
    if (stw_read_file(ns_path, 256, &c->ns, &len, &ignored) == 0)
        c->ns[strcspn(c->ns, " \r\n")] = '\0';
    return stw_kubeconfig_check_server(c, err);
}

int stw_kubeconfig_in_cluster(const char *host, const char *port, const char *dir,
                              struct stw_kubeconfig **ret, struct stw_error *err)
{
    struct stw_kubeconfig *c = calloc(1, sizeof(*c));
    if (!c)
        return stw_fail_memory(err);
    if (fill_in_cluster(c, host, port, dir, err) < 0) {
        stw_kubeconfig_destroy(c);
        return -1;
    }
    *ret = c;
    return 0;
}

/* --- files */

static int add_file(struct stw_kubeconfig_file *f, const char *path, struct stw_error *err)
{
    char *text = NULL;
    size_t len = 0;
    const char *slash = strrchr(path, '/');
    stw_autofree char *dir =
        slash ? strndup(path, STW_MAX((size_t)(slash - path), 1U)) : strdup(".");
    if (stw_read_file(path, STW_KUBECONFIG_MAX_BYTES, &text, &len, err) < 0) {
        *f = (struct stw_kubeconfig_file){0};
        return -1;
    }
    int r = stw_kubeconfig_file_init(f, path, text, len, dir, err);
    stw_wipe(text, len);
    free(text);
    return r;
}

/* With `must`, `list` is one path that must exist.  Otherwise it is several with ':' between;
 * missing ones are skipped. */
static int load_files(const char *list, bool must, const char *context, struct stw_kubeconfig **ret,
                      struct stw_error *err)
{
    struct stw_kubeconfig_file files[FILES_MAX];
    size_t count = 0;
    int r = 0;
    stw_autofree char *paths = strdup(list);
    char *rest = paths;
    for (char *path; r == 0 && rest && (path = must ? rest : strsep(&rest, ":"));) {
        if (must)
            rest = NULL;
        if (path[0] == '\0' || (!must && access(path, F_OK) < 0))
            continue;
        if (count == FILES_MAX)
            r = stw_fail(err, STW_ERR_INVALID, "$KUBECONFIG names more than %d files", FILES_MAX);
        else
            r = add_file(&files[count++], path, err);
    }
    if (r == 0 && count == 0)
        r = stw_fail(err, STW_ERR_INVALID, "$KUBECONFIG is \"%.200s\", and no such file exists",
                     list);
    if (r == 0)
        r = stw_kubeconfig_resolve(files, count, context, ret, err);
    for (size_t i = 0; i < count; i++)
        stw_kubeconfig_file_done(&files[i]);
    return r;
}

int stw_kubeconfig_load_for_person(const char *flag_path, const char *context,
                                   struct stw_kubeconfig **ret, struct stw_error *err)
{
    const char *env = getenv("KUBECONFIG"), *host = getenv("KUBERNETES_SERVICE_HOST"),
               *port = getenv("KUBERNETES_SERVICE_PORT"), *home = getenv("HOME");
    if (flag_path && flag_path[0] != '\0')
        return load_files(flag_path, true, context, ret, err);
    if (env && env[0] != '\0')
        return load_files(env, false, context, ret, err);
    if (host && host[0] != '\0' && port && port[0] != '\0')
        return stw_kubeconfig_in_cluster(host, port, STW_SERVICEACCOUNT_DIR, ret, err);
    stw_autofree char *path = in_dir(home ? home : "", ".kube/config");
    if (path && home && access(path, F_OK) == 0)
        return load_files(path, true, context, ret, err);
    return stw_fail(err, STW_ERR_INVALID,
                    "no cluster is configured: give --kubeconfig, set $KUBECONFIG, run in a pod "
                    "with a ServiceAccount, or have ~/.kube/config");
}

int stw_kubeconfig_load(const char *flag_path, const char *context, struct stw_kubeconfig **ret,
                        struct stw_error *err)
{
    struct stw_kubeconfig *c = NULL;
    if (stw_kubeconfig_load_for_person(flag_path, context, &c, err) != 0)
        return -1;
    if (c->exec) {
        (void)stw_fail(err, STW_ERR_INVALID,
                       "%s has exec: credential plugins are not run here; " STW_KUBECONFIG_INSTEAD,
                       c->exec->who);
        stw_kubeconfig_destroy(c);
        return -1;
    }
    *ret = c;
    return 0;
}
