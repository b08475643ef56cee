/* SPDX-License-Identifier: Apache-2.0
 *
 * One kubeconfig file as JSON: found by kubeconfig_load.c, read by kubeconfig.c. */
#ifndef STW_KUBE_KUBECONFIG_FILE_PRIV_H
#define STW_KUBE_KUBECONFIG_FILE_PRIV_H

#include "base/json.h"
#include "base/util.h"
#include "kube/kubeconfig.h"

struct stw_kubeconfig_file {
    char *name, *dir;
    struct stw_buf json; /* empty for an empty file */
    struct stw_json_doc doc;
};

/* `f` must be passed to stw_kubeconfig_file_done, also after a failure.  `dir` NULL: files named in
 * it are not read. */
int stw_kubeconfig_file_init(struct stw_kubeconfig_file *f, const char *name, const char *text,
                             size_t len, const char *dir, struct stw_error *err) STW_MUST_CHECK;
void stw_kubeconfig_file_done(struct stw_kubeconfig_file *f);

/* The context (NULL: the current one) of files merged in this order. */
int stw_kubeconfig_resolve(const struct stw_kubeconfig_file *files, size_t count,
                           const char *context, struct stw_kubeconfig **ret,
                           struct stw_error *err) STW_MUST_CHECK;
/* Refuses a server that is not an http or https URL, and removes trailing slashes. */
int stw_kubeconfig_check_server(struct stw_kubeconfig *c, struct stw_error *err) STW_MUST_CHECK;

#endif
