/* SPDX-License-Identifier: Apache-2.0
 *
 * The current database targets of steward's configuration file.  A thread checks the file when its
 * folder reports a change, and every minute.  A new list replaces the old one only if all of it is
 * valid. */
#ifndef STW_KINDS_DATABASEUSER_TARGETS_H
#define STW_KINDS_DATABASEUSER_TARGETS_H

#include "base/buf.h"
#include "base/error.h"
#include "base/metrics.h"
#include "base/util.h"
#include "sql/target/target.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- parsing */

struct dbu_target_file {
    struct stw_targets *targets;     /* NULL when there are errors */
    struct stw_hash fingerprint;     /* of the list as it is written */
    struct stw_buf errors, warnings; /* a line each: "steward.yaml:7:5: targets[0].port: ..." */
    unsigned error_count;
};

/* `name` is for messages.  Keys other than `targets` are skipped.  Returns 0, or -1: the first
 * error is in `err`, all of them are in ret->errors.  Call done() in any case. */
int dbu_target_file_parse(const char *name, const char *text, size_t len,
                          struct dbu_target_file *ret, struct stw_error *err) STW_MUST_CHECK;
int dbu_target_file_read(const char *path, struct dbu_target_file *ret,
                         struct stw_error *err) STW_MUST_CHECK;
void dbu_target_file_done(struct dbu_target_file *f);
#define dbu_autotargetfile __attribute__((cleanup(dbu_target_file_done)))

/* Reads the admin's password: from a Secret in `ns`, or a file.  `ret` is secret; the caller wipes it. */
struct stw_client;
int dbu_target_password(struct stw_client *client, const char *ns, const struct stw_target *t,
                        struct stw_buf *ret, struct stw_error *err) STW_MUST_CHECK;

/* --- the store */

struct dbu_target_store;

struct dbu_target_store_config {
    const char *path;            /* copied; NULL or "": no file and no targets */
    struct stw_metrics *metrics; /* or NULL */
    /* Gets the new text of the file, also when its targets are refused; for other readers of that
     * file, or NULL.  Called on the store's thread. */
    void (*text)(void *ctx, const char *text, size_t len);
    void *text_ctx;
};

/* Reads the file.  An invalid one is an error; its findings are logged. */
int dbu_target_store_create(const struct dbu_target_store_config *config,
                            struct dbu_target_store **ret, struct stw_error *err) STW_MUST_CHECK;
/* Starts the thread; without it the list never changes. */
int dbu_target_store_start(struct dbu_target_store *s, struct stw_error *err) STW_MUST_CHECK;
/* Afterwards changes are no longer reported; the list stays. */
void dbu_target_store_stop(struct dbu_target_store *s);
void dbu_target_store_destroy(struct dbu_target_store *s);

/* The current list, with a reference for the caller; NULL: there is none.  From any thread.
 * `store` is a struct dbu_target_store *, so that this serves as stw_lookup.targets. */
struct stw_targets *dbu_target_store_get(void *store);

/* Called on the store's thread after the list was replaced; `now` is borrowed.  Must not call
 * on_change or forget, because the lock of the listeners is held.  -1: too many listeners. */
typedef void dbu_target_change_fn(void *ctx, struct stw_targets *now);
int dbu_target_store_on_change(struct dbu_target_store *s, dbu_target_change_fn *fn, void *ctx);
/* When this returns, no call of `fn` with this `ctx` is running or will follow. */
void dbu_target_store_forget(struct dbu_target_store *s, dbu_target_change_fn *fn, void *ctx);

/* Checks the file once, as the thread does; returns the time until the next check, in ms. */
uint64_t dbu_target_store_look(struct dbu_target_store *s);

#endif
