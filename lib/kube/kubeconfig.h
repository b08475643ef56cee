/* SPDX-License-Identifier: Apache-2.0
 *
 * The API server's address and our credentials: kubeconfig files and the in-cluster identity.
 * Order as in client-go: the flag, $KUBECONFIG (a list, merged), in-cluster, ~/.kube/config. */
#ifndef STW_KUBE_KUBECONFIG_H
#define STW_KUBE_KUBECONFIG_H

#include "base/error.h"
#include "base/util.h"

#include <stdbool.h>
#include <stddef.h>

struct stw_exec;

struct stw_kubeconfig {
    char *server;               /* "https://127.0.0.1:6443", without a trailing slash */
    char *ca_pem;               /* NULL: the system's CAs */
    char *ca_path;              /* where ca_pem came from, re-read when it changes; NULL: inline */
    bool insecure;              /* insecure-skip-tls-verify */
    char *tls_server_name;      /* NULL: from the URL */
    char *proxy_url;            /* NULL: the environment's */
    char *cert_pem, *key_pem;   /* client certificate, or NULL */
    char *cert_path, *key_path; /* where they came from, re-read when they change; NULL: inline */
    char *token;                /* bearer token, or NULL */
    char *token_path;           /* read again each minute and after a 401; overrides token */
    char *username, *password;  /* basic, or NULL */
    char *impersonation;        /* headers "Impersonate-User: me\n...", or NULL */
    struct stw_exec *exec;      /* credential plugin, which the client runs; or NULL */
    char *ns;                   /* the context's namespace, or NULL */
    char *source;               /* for messages: a path, or "in-cluster" */
};

/* `flag_path` and `context` may be NULL.  Errors name file and key: an exec or auth-provider user
 * is refused, with the alternatives in the message.  The caller owns *ret; destroy wipes
 * secrets. */
int stw_kubeconfig_load(const char *flag_path, const char *context, struct stw_kubeconfig **ret,
                        struct stw_error *err) STW_MUST_CHECK;
/* The same for a command that a person runs: an exec user is allowed.  The writer
 * of the kubeconfig then decides what is run, so no server may call it. */
int stw_kubeconfig_load_for_person(const char *flag_path, const char *context,
                                   struct stw_kubeconfig **ret,
                                   struct stw_error *err) STW_MUST_CHECK;
/* The same from memory, with exec users, whose plugin is not run: `dir` is the base of relative paths; NULL: files that the text names are
 * not read.  For tests and fuzzing. */
int stw_kubeconfig_parse(const char *name, const char *text, size_t len, const char *dir,
                         const char *context, struct stw_kubeconfig **ret,
                         struct stw_error *err) STW_MUST_CHECK;
void stw_kubeconfig_destroy(struct stw_kubeconfig *c);

#endif
