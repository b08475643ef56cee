/* SPDX-License-Identifier: Apache-2.0
 *
 * What a program adds to the commands of the framework: options, what its kinds share, rights,
 * checks.  Every member may be NULL or 0. */
#ifndef STW_OPERATOR_EXTENSION_H
#define STW_OPERATOR_EXTENSION_H

#include "base/buf.h"
#include "base/error.h"
#include "base/metrics.h"
#include "base/util.h"
#include "operator/command.h"
#include "operator/flags.h"

#include <stddef.h>

struct doctor;
struct stw_client;
struct stw_kubeconfig;
struct stw_product;
struct stw_remote;
struct stw_rule;

/* An option of run, webhook, validate or audit.  If the command has an option of that name, only
 * its help text is replaced.  flag.offset is in the extension's struct of options. */
struct stw_extra_flag {
    const char *command; /* NULL ends a table */
    const char *after;   /* the option that it follows; NULL: it is the last */
    struct stw_flag flag;
};

/* Replaces the usage of a command. */
struct stw_extra_usage {
    const char *command; /* NULL ends a table */
    const char *usage;
};

/* A line of `version`. */
struct stw_library {
    const char *name; /* NULL ends a table */
    const char *(*version)(void);
};

/* One run of run, webhook, validate or audit, as the extension sees it. */
struct stw_host {
    const struct stw_operator *op;
    const struct stw_command *command;
    const void *options;         /* the extension's struct of options; NULL: it has none */
    const char *config;          /* run, webhook: path of the configuration file; or NULL, "" */
    bool reconcile;              /* run: this process reconciles */
    struct stw_metrics *metrics; /* run, webhook */
    const struct stw_kubeconfig *kubeconfig; /* run, from connect() on */
    struct stw_client *client;               /* run, audit: from connect() on */
    const struct stw_remote *remote;         /* audit: from connect() on */
    const char *ns;                          /* run, audit: where the program is installed */
    /* run, webhook: to be called when the configuration file has changed, from any thread. */
    void (*reread)(void *ctx, const char *text, size_t len);
    void *reread_ctx;
    /* Set by the extension: */
    const struct stw_product *product; /* by open(); what env->product is for the kinds */
    void *state;
    struct stw_buf lines; /* validate: an error of open() that needs several lines */
};

struct stw_extension {
    const char *commit;    /* of the program's sources, for `version`; NULL: not shown */
    const char *manifests; /* folder for `kubectl apply -k`, in advice; NULL: "config" */
    const struct stw_library *libraries;
    size_t options_size; /* of the struct that the flags fill */
    const struct stw_extra_flag *flags;
    const struct stw_extra_usage *usages;
    /* Keys of the configuration file that the extension reads by itself; ended by NULL. */
    const char *const *file_keys;
    const struct stw_rule *rules; /* rights of the calls that it makes; ended by a NULL resource */

    /* Checks the options; nothing has been opened. */
    int (*check)(const struct stw_host *h, struct stw_error *err);
    /* Reads what the kinds share.  No thread exists yet. */
    int (*open)(struct stw_host *h, struct stw_error *err);
    /* Calls `add` with each file that is read while the sandbox is on. */
    void (*files)(const struct stw_host *h, void (*add)(void *ctx, const char *path), void *ctx);
    /* The API server can be asked; not called by webhook and validate. */
    int (*connect)(struct stw_host *h, struct stw_error *err);
    /* run, webhook: threads may be created. */
    int (*start)(struct stw_host *h, struct stw_error *err);
    /* run: called once before the manager stops. */
    void (*stop)(struct stw_host *h);
    /* After open(), also if it failed.  The manager and the webhook are gone. */
    void (*close)(struct stw_host *h);
    /* More checks of doctor, ended by NULL. */
    void (*const *checks)(struct doctor *d);
};

/* The folder of the manifests of an operator, with or without an extension. */
const char *stw_manifests_folder(const struct stw_operator *op);

/* Each calls the member of that name if there is one; 0: there is none. */
int stw_host_check(const struct stw_host *h, struct stw_error *err) STW_MUST_CHECK;
int stw_host_open(struct stw_host *h, struct stw_error *err) STW_MUST_CHECK;
int stw_host_connect(struct stw_host *h, struct stw_error *err) STW_MUST_CHECK;
int stw_host_start(struct stw_host *h, struct stw_error *err) STW_MUST_CHECK;
void stw_host_stop(struct stw_host *h);
void stw_host_close(struct stw_host *h);
void stw_host_files(const struct stw_host *h, void (*add)(void *ctx, const char *path), void *ctx);

/* --- options */

/* Runs a subcommand: parses into `settings`, which must be zeroed, and calls `fn` with the
 * operands. The strings are freed after it. --help and errors as by stw_flags_start. Returns the exit status.
 * If the extension has options for the command, `settings` must begin with a void *: during the call
 * it points to the extension's struct. */
typedef int stw_flags_fn(const struct stw_call *call, void *settings, int count, char **operands);
int stw_flags_run(const struct stw_call *call, void *settings, stw_flags_fn *fn);
/* The extension's struct for a table, zeroed, at the start of `settings`; and its end. 0 or -1. */
int stw_flags_begin_extra(const struct stw_call *call, const struct stw_flag *table,
                          void *settings) STW_MUST_CHECK;
void stw_flags_end_extra(const struct stw_flag *table, void *settings);

#endif
