/* SPDX-License-Identifier: Apache-2.0
 *
 * The database targets of steward's configuration file, as they are now.  A thread looks at the
 * file when its folder reports a change, and each minute; a new list is checked whole before it
 * takes the place of the old one, which stays when anything is wrong. */
#ifndef STW_CONTROLLER_TARGETS_H
#define STW_CONTROLLER_TARGETS_H

#include "base/buf.h"
#include "base/error.h"
#include "base/metrics.h"
#include "base/util.h"
#include "kinds/target.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- one reading */

struct stw_target_file {
    struct stw_targets *targets;     /* NULL when there are errors */
    struct stw_hash fingerprint;     /* of the list as it is written */
    struct stw_buf errors, warnings; /* a line each: "steward.yaml:7:5: targets[0].port: ..." */
    unsigned error_count;
};

/* `name` is for messages.  Keys other than `targets` are passed over.  Returns 0, or -1: the first
 * error in `err`, all of them in ret->errors.  done() in any case. */
int stw_target_file_parse(const char *name, const char *text, size_t len,
                          struct stw_target_file *ret, struct stw_error *err);
int stw_target_file_read(const char *path, struct stw_target_file *ret, struct stw_error *err);
void stw_target_file_done(struct stw_target_file *f);
#define stw_autotargetfile __attribute__((cleanup(stw_target_file_done)))

/* --- the store */

struct stw_target_store;

struct stw_target_store_config {
    const char *path; /* copied; NULL or "": there is no file, and there are no targets */
    struct stw_metrics *metrics; /* or NULL */
    /* For whoever else reads that file, or NULL: its new text, also when its targets are refused.
     * On the store's thread. */
    void (*text)(void *ctx, const char *text, size_t len);
    void *text_ctx;
};

/* Reads the file; a wrong one is an error, after its findings were logged. */
int stw_target_store_create(const struct stw_target_store_config *config,
                            struct stw_target_store **ret, struct stw_error *err);
/* The thread; without it the list never changes. */
int stw_target_store_start(struct stw_target_store *s, struct stw_error *err);
/* After it nobody is told of changes any more; the list stays. */
void stw_target_store_stop(struct stw_target_store *s);
void stw_target_store_destroy(struct stw_target_store *s);

/* The list of now, a reference of the caller's; NULL: there is none.  From any thread; `store` is a
 * struct stw_target_store *, so that this serves as stw_lookup.targets. */
struct stw_targets *stw_target_store_get(void *store);

/* Called on the store's thread with no lock held, after the list was replaced; `now` is borrowed.
 * -1: too many ask. */
typedef void stw_target_change_fn(void *ctx, struct stw_targets *now);
int stw_target_store_on_change(struct stw_target_store *s, stw_target_change_fn *fn, void *ctx);
/* No call of `fn` with this `ctx` runs or comes when this returns. */
void stw_target_store_forget(struct stw_target_store *s, stw_target_change_fn *fn, void *ctx);

/* One look, as the thread has it; returns when to look again, in milliseconds. */
uint64_t stw_target_store_look(struct stw_target_store *s);

#endif
