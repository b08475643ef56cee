/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store.h"

#include "base/clock.h"
#include "base/thread.h"
#include "base/util.h"
#include "store/store_priv.h"

#include <assert.h>
#include <stdarg.h>

static const struct {
    const char *name;
    enum stw_err code;
} troubles[] = {
    [STW_STORE_FINE] = {"Reachable", STW_OK},
    [STW_STORE_CONNECT] = {"ConnectFailed", STW_ERR_UNAVAILABLE},
    [STW_STORE_TLS] = {"TLSFailed", STW_ERR_UNAVAILABLE},
    [STW_STORE_DENIED] = {"AccessDenied", STW_ERR_FORBIDDEN},
    [STW_STORE_REGION] = {"WrongRegion", STW_ERR_UNAVAILABLE},
    [STW_STORE_NO_BUCKET] = {"NoSuchBucket", STW_ERR_NOT_FOUND},
    [STW_STORE_NOT_FOUND] = {"NoSuchSnapshot", STW_ERR_NOT_FOUND},
    [STW_STORE_FULL] = {"StoreFull", STW_ERR_UNAVAILABLE},
    [STW_STORE_NOT_ALLOWED] = {"EndpointNotAllowed", STW_ERR_FORBIDDEN},
    [STW_STORE_FAILED] = {"StoreFailed", STW_ERR_UNAVAILABLE},
};
static_assert(STW_COUNT(troubles) == STW_STORE_TROUBLES, "one row for each trouble");

const char *stw_store_trouble_name(enum stw_store_trouble t)
{
    assert(t < STW_STORE_TROUBLES);
    return troubles[t].name;
}

int stw_store_fail(enum stw_store_trouble *trouble, enum stw_store_trouble what,
                   struct stw_error *err, const char *fmt, ...)
{
    va_list ap;
    assert(what < STW_STORE_TROUBLES);
    *trouble = what;
    va_start(ap, fmt);
    (void)stw_vfail(err, troubles[what].code, fmt, ap);
    va_end(ap);
    return -1;
}

int stw_store_fail_memory(enum stw_store_trouble *trouble, struct stw_error *err)
{
    return stw_store_fail(trouble, STW_STORE_FAILED, err, "out of memory");
}

/* --- common to all stores */

int stw_store_init(struct stw_store *s, const struct stw_store_ops *ops, struct stw_error *err)
{
    s->ops = ops;
    if (stw_cond_init(&s->wake) != 0)
        return stw_fail(err, STW_ERR_INTERNAL, "cannot make a condition variable");
    (void)pthread_mutex_init(&s->lock, NULL);
    return 0;
}

void stw_store_done(struct stw_store *s)
{
    (void)pthread_cond_destroy(&s->wake);
    (void)pthread_mutex_destroy(&s->lock);
}

void stw_store_cancel(struct stw_store *s)
{
    if (!s)
        return;
    STW_LOCKED(&s->lock);
    s->cancelled = true;
    pthread_cond_broadcast(&s->wake);
}

void stw_store_set_timeout(struct stw_store *s, uint64_t ms)
{
    s->deadline_ms = ms > 0 ? stw_now_ms(&stw_clock_system) + ms : 0;
}

bool stw_store_has_time(const struct stw_store *s, uint32_t ms)
{
    return s->deadline_ms == 0 || stw_now_ms(&stw_clock_system) + ms < s->deadline_ms;
}

static bool is_cancelled(struct stw_store *s)
{
    STW_LOCKED(&s->lock);
    return s->cancelled;
}

int stw_store_check(struct stw_store *s, enum stw_store_trouble *trouble, struct stw_error *err)
{
    if (is_cancelled(s)) {
        *trouble = STW_STORE_FAILED;
        return stw_fail(err, STW_ERR_CANCELLED, "stopped");
    }
    if (!stw_store_has_time(s, 0))
        return stw_store_fail(trouble, STW_STORE_CONNECT, err, "the store took too long");
    return 0;
}

void stw_store_pause(struct stw_store *s, uint32_t ms)
{
    uint64_t until = stw_now_ms(&stw_clock_system) + ms;
    pthread_mutex_lock(&s->lock);
    while (!s->cancelled && stw_now_ms(&stw_clock_system) < until)
        stw_cond_wait_until(&s->wake, &s->lock, until);
    pthread_mutex_unlock(&s->lock);
}

/* --- calls through the table of operations */

static int check_store_call(struct stw_store *s, const char *key, enum stw_store_trouble *trouble,
                            struct stw_error *err)
{
    *trouble = STW_STORE_FINE;
    if (stw_store_check(s, trouble, err) != 0)
        return -1;
    if (strlen(key) > STW_STORE_KEY_MAX)
        return stw_store_fail(trouble, STW_STORE_FAILED, err, "a key of more than %d bytes",
                              STW_STORE_KEY_MAX);
    return 0;
}

int stw_upload_begin(struct stw_store *s, const char *key, struct stw_upload **ret,
                     enum stw_store_trouble *trouble, struct stw_error *err)
{
    return check_store_call(s, key, trouble, err) == 0 ? s->ops->begin(s, key, ret, trouble, err)
                                                       : -1;
}

int stw_upload_write(struct stw_upload *u, const void *data, size_t len,
                     enum stw_store_trouble *trouble, struct stw_error *err)
{
    assert(u->store && u->store->ops);
    *trouble = STW_STORE_FINE;
    return u->store->ops->write(u, data, len, trouble, err);
}

int stw_upload_finish(struct stw_upload *u, enum stw_store_trouble *trouble, struct stw_error *err)
{
    *trouble = STW_STORE_FINE;
    return u->store->ops->finish(u, trouble, err);
}

void stw_upload_abort(struct stw_upload *u)
{
    if (u)
        u->store->ops->abort(u);
}

int stw_store_read(struct stw_store *s, const char *key, stw_store_sink_fn *sink, void *ctx,
                   enum stw_store_trouble *trouble, struct stw_error *err)
{
    return check_store_call(s, key, trouble, err) == 0
               ? s->ops->read(s, key, sink, ctx, trouble, err)
               : -1;
}

int stw_store_list(struct stw_store *s, const char *prefix, stw_store_each_fn *each, void *ctx,
                   enum stw_store_trouble *trouble, struct stw_error *err)
{
    return check_store_call(s, prefix, trouble, err) == 0
               ? s->ops->list(s, prefix, each, ctx, trouble, err)
               : -1;
}

int stw_store_clean(struct stw_store *s, const char *prefix, const struct stw_store_filter *mine,
                    int64_t before_us, unsigned *ret_count, enum stw_store_trouble *trouble,
                    struct stw_error *err)
{
    *ret_count = 0;
    return check_store_call(s, prefix, trouble, err) == 0
               ? s->ops->clean(s, prefix, mine, before_us, ret_count, trouble, err)
               : -1;
}

int stw_store_delete(struct stw_store *s, const char *key, enum stw_store_trouble *trouble,
                     struct stw_error *err)
{
    return check_store_call(s, key, trouble, err) == 0 ? s->ops->remove(s, key, trouble, err) : -1;
}

void stw_store_destroy(struct stw_store *s)
{
    if (s)
        s->ops->destroy(s);
}
