/* SPDX-License-Identifier: Apache-2.0
 *
 * One kubeconfig file as JSON: what kubeconfig.c reads and kubeconfig_load.c finds. */
#ifndef STW_KUBE_KUBECONFIG_FILE_PRIV_H
#define STW_KUBE_KUBECONFIG_FILE_PRIV_H

#include "base/json.h"
#include "kube/kubeconfig.h"

struct stw_kubeconfig_file {
    char *name, *dir;
    struct stw_buf json; /* empty for an empty file */
    struct stw_json_doc doc;
};

/* Also after a failure, `f` is to be given to done.  `dir` NULL: files named in it are not read. */
int stw_kubeconfig_file_init(struct stw_kubeconfig_file *f, const char *name, const char *text,
                             size_t len, const char *dir, struct stw_error *err);
void stw_kubeconfig_file_done(struct stw_kubeconfig_file *f);

/* The context (NULL: the current one) of files merged in this order. */
int stw_kubeconfig_resolve(const struct stw_kubeconfig_file *files, size_t count,
                           const char *context, struct stw_kubeconfig **ret, struct stw_error *err);
/* Refuses a server that is no http or https URL and takes slashes off its end. */
int stw_kubeconfig_check_server(struct stw_kubeconfig *c, struct stw_error *err);

#endif
