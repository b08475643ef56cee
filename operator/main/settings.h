/* SPDX-License-Identifier: Apache-2.0
 *
 * The settings of `steward run` and `steward webhook`, from flags or a file. */
#ifndef STW_OPERATOR_SETTINGS_H
#define STW_OPERATOR_SETTINGS_H

#include "base/error.h"
#include "base/util.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stw_settings {
    void *extra; /* options of the extension */
    char *config, *kubeconfig, *context;
    char *ns, *namespaces, *kinds;
    char *webhook_bind, *webhook_cert_path, *webhook_hosts, *webhook_service;
    char *webhook_client_ca, *webhook_client_names;
    char *metrics_bind, *metrics_cert_path, *health_bind;
    bool metrics_secure;
    char *log_format, *log_level, *role, *sandbox, *template_updates;
    char *traces_endpoint;
    bool leader_elect;
    bool shadow;
    char *shadow_output;
    int64_t shadow_timeout_ms;
    int64_t workers, shutdown_delay_ms;
    int64_t memory_limit_mib;
    int64_t webhook_memory_mib, max_connections, request_timeout_ms, idle_timeout_ms;

    /* Derived from the above. */
    bool webhook, reconcile; /* the roles of this process */
    bool log_level_given;    /* on the command line: overrides the file */
};

/* Reads flags, then the file, then checks the values and sets up the log. Prints help and errors
 * itself. Returns -1 to continue, else the exit status. `s` must be zeroed; call done() in any
 * case. */
struct stw_call;
int stw_settings_load(const struct stw_call *call, struct stw_settings *s);
void stw_settings_done(const struct stw_call *call, struct stw_settings *s);
/* The options of `run`; and those of `webhook`, which apply without a cluster. */
struct stw_flag;
void stw_settings_run_flags(struct stw_flag *ret);
void stw_settings_webhook_flags(struct stw_flag *ret);

/* Called when the configuration file has changed: applies the log level from the new text, the only
 * option here that can change at run time. `settings` is a const struct stw_settings *, so that
 * this can be the `reread` of a struct stw_host. */
void stw_settings_reread(void *settings, const char *text, size_t len);

/* "a,b" as a list ended by NULL; NULL for "" and NULL. Freed by stw_list_free.  -1: out of memory, and
 * the list is NULL. */
int stw_list_split(const char *text, char ***ret, struct stw_error *err) STW_MUST_CHECK;
void stw_list_free(char **list);

#endif
