/* SPDX-License-Identifier: Apache-2.0
 *
 * What a kind of store implements.  The operations are those of store.h. */
#ifndef STW_STORE_STORE_PRIV_H
#define STW_STORE_STORE_PRIV_H

#include "base/util.h"
#include "store/store.h"

#include <pthread.h>

struct stw_store_ops {
    int (*begin)(struct stw_store *s, const char *key, struct stw_upload **ret,
                 enum stw_store_trouble *trouble, struct stw_error *err);
    int (*write)(struct stw_upload *u, const void *data, size_t len,
                 enum stw_store_trouble *trouble, struct stw_error *err);
    int (*finish)(struct stw_upload *u, enum stw_store_trouble *trouble, struct stw_error *err);
    void (*abort)(struct stw_upload *u);
    int (*read)(struct stw_store *s, const char *key, stw_store_sink_fn *sink, void *ctx,
                enum stw_store_trouble *trouble, struct stw_error *err);
    int (*list)(struct stw_store *s, const char *prefix, stw_store_each_fn *each, void *ctx,
                enum stw_store_trouble *trouble, struct stw_error *err);
    int (*clean)(struct stw_store *s, const char *prefix, const struct stw_store_filter *mine,
                 int64_t before_us, unsigned *ret_count, enum stw_store_trouble *trouble,
                 struct stw_error *err);
    int (*remove)(struct stw_store *s, const char *key, enum stw_store_trouble *trouble,
                  struct stw_error *err);
    void (*destroy)(struct stw_store *s);
};

/* The first member of each kind's own struct. */
struct stw_store {
    const struct stw_store_ops *ops;
    pthread_mutex_t lock; /* guards `cancelled` */
    pthread_cond_t wake;
    bool cancelled;
    uint64_t deadline_ms; /* 0: none; only for the thread that uses the store */
};
struct stw_upload {
    struct stw_store *store;
};

int stw_store_init(struct stw_store *s, const struct stw_store_ops *ops,
                   struct stw_error *err) STW_MUST_CHECK;
void stw_store_done(struct stw_store *s);
/* -1: the store was cancelled, or its time is over. */
int stw_store_check(struct stw_store *s, enum stw_store_trouble *trouble,
                    struct stw_error *err) STW_MUST_CHECK;
/* Whether `ms` from now is before the deadline. */
bool stw_store_has_time(const struct stw_store *s, uint32_t ms);
/* Waits for `ms`, or until the store is cancelled. */
void stw_store_pause(struct stw_store *s, uint32_t ms);
/* Sets `*trouble` and `err`; returns -1. */
int stw_store_fail(enum stw_store_trouble *trouble, enum stw_store_trouble what,
                   struct stw_error *err, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
int stw_store_fail_memory(enum stw_store_trouble *trouble, struct stw_error *err);

#endif
