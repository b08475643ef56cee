/* SPDX-License-Identifier: Apache-2.0
 *
 * The settings of `steward run` and `steward webhook`, from flags or a file. */
#ifndef STW_CMD_SETTINGS_H
#define STW_CMD_SETTINGS_H

#include "base/error.h"
#include "base/util.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stw_settings {
    char *config, *kubeconfig, *context;
    char *ns, *namespaces, *agent_image, *store_endpoints;
    char *webhook_bind, *webhook_cert_path, *webhook_hosts, *webhook_service;
    char *webhook_client_ca, *webhook_client_names;
    char *metrics_bind, *metrics_cert_path, *health_bind;
    bool metrics_secure;
    char *node_port_range, *log_format, *log_level, *role, *sandbox;
    bool leader_elect;
    int64_t workers, shutdown_delay_ms;
    int64_t webhook_memory_mib, max_connections, request_timeout_ms, idle_timeout_ms;

    /* Derived from the above. */
    int32_t node_port_min, node_port_max;
    bool webhook, reconcile; /* the roles of this process */
    bool log_level_given;    /* on the command line: overrides the file */
};

/* Reads flags, then the file, then checks the values and sets up the log. Without a cluster
 * (`steward webhook`), only the options that apply there are accepted. Prints help and errors
 * itself. Returns -1 to continue, else the exit status. */
int stw_settings_load(bool cluster, const char *usage, int argc, char **argv,
                      struct stw_settings *s);
void stw_settings_done(struct stw_settings *s);
/* The options that are accepted; the table is static. */
struct stw_flag;
const struct stw_flag *stw_settings_flags(bool cluster);

/* Called when the configuration file has changed: applies the log level from the new text, the only
 * option here that can change at run time. `settings` is a const struct stw_settings *, so that
 * this can be a stw_target_store_config.text. */
void stw_settings_reread(void *settings, const char *text, size_t len);

/* "30000-32767" */
int stw_node_port_range_parse(const char *text, int32_t *ret_min, int32_t *ret_max,
                              struct stw_error *err) STW_MUST_CHECK;

/* "a,b" as a list ended by NULL; NULL for "". Freed by stw_list_free. */
char **stw_list_split(const char *text);
void stw_list_free(char **list);

#endif
