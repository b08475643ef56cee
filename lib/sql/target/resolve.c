/* SPDX-License-Identifier: Apache-2.0 */
#include "sql/target/resolve.h"

#include "sql/core/engine.h"

#include "base/clock.h"
#include "base/thread.h"
#include "base/util.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#define STACK_BYTES ((size_t)256 << 10)

/* Referenced by the waiting caller and by the lookup thread; the last one frees it. */
struct lookup {
    atomic_uint refs;
    stw_lookup_fn *by;
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool done;
    int result; /* of getaddrinfo */
    struct stw_addresses found;
    char host[];
};

static atomic_uint under_way;

static void unref_lookup(struct lookup *l)
{
    if (atomic_fetch_sub(&l->refs, 1) != 1)
        return;
    (void)pthread_cond_destroy(&l->cond);
    (void)pthread_mutex_destroy(&l->lock);
    free(l);
}

static struct lookup *make_lookup(stw_lookup_fn *by, const char *host)
{
    size_t len = strlen(host) + 1;
    struct lookup *l = calloc(1, sizeof(*l) + len);
    if (!l)
        return NULL;
    atomic_init(&l->refs, 1);
    l->by = by;
    memcpy(l->host, host, len);
    (void)pthread_mutex_init(&l->lock, NULL);
    (void)stw_cond_init(&l->cond);
    return l;
}

static void add_address(struct stw_addresses *to, const struct sockaddr *from)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    char *text = to->text[to->count];
    if (from->sa_family == AF_INET) {
        memcpy(&v4, from, sizeof(v4));
        to->count += inet_ntop(AF_INET, &v4.sin_addr, text, INET6_ADDRSTRLEN) != NULL;
    } else if (from->sa_family == AF_INET6) {
        memcpy(&v6, from, sizeof(v6));
        to->count += inet_ntop(AF_INET6, &v6.sin6_addr, text, INET6_ADDRSTRLEN) != NULL;
    }
}

static void *run_lookup(void *ctx)
{
    struct lookup *l = ctx;
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *list = NULL;
    int result = l->by(l->host, NULL, &hints, &list);
    (void)pthread_mutex_lock(&l->lock);
    for (const struct addrinfo *a = list; a && l->found.count < STW_ADDRESSES_MAX; a = a->ai_next)
        add_address(&l->found, a->ai_addr);
    l->result = result == 0 && l->found.count == 0 ? EAI_NONAME : result;
    l->done = true;
    (void)pthread_cond_signal(&l->cond);
    (void)pthread_mutex_unlock(&l->lock);
    if (list)
        freeaddrinfo(list);
    unref_lookup(l);
    atomic_fetch_sub(&under_way, 1);
    return NULL;
}

static int start_lookup(struct lookup *l, struct stw_error *err)
{
    pthread_t thread;
    if (atomic_fetch_add(&under_way, 1) >= STW_LOOKUPS_MAX) {
        atomic_fetch_sub(&under_way, 1);
        return stw_fail(err, STW_ERR_UNAVAILABLE,
                        "cannot look up the host: %d earlier lookups have no answer yet",
                        STW_LOOKUPS_MAX);
    }
    atomic_fetch_add(&l->refs, 1);
    if (stw_thread_start(&thread, "lookup", STACK_BYTES, run_lookup, l, err) == 0) {
        (void)pthread_detach(thread);
        return 0;
    }
    unref_lookup(l);
    atomic_fetch_sub(&under_way, 1);
    err->code = STW_ERR_UNAVAILABLE;
    return -1;
}

static int wait_for_lookup(struct lookup *l, uint64_t timeout_ms, struct stw_addresses *ret,
                           struct stw_error *err)
{
    uint64_t deadline = stw_now_ms(&stw_clock_system) + timeout_ms;
    (void)pthread_mutex_lock(&l->lock);
    while (!l->done && stw_now_ms(&stw_clock_system) < deadline)
        stw_cond_wait_until(&l->cond, &l->lock, deadline);
    bool done = l->done;
    int result = l->result;
    if (done && result == 0)
        *ret = l->found;
    (void)pthread_mutex_unlock(&l->lock);
    if (!done)
        return stw_fail(err, STW_ERR_TIMEOUT,
                        "cannot look up the host: no name server answered in time; see the DNS of "
                        "steward's pod");
    if (result != 0)
        return stw_fail(err, STW_ERR_NOT_FOUND,
                        "cannot find the host: %s; see the host of the target, and the DNS of "
                        "steward's pod",
                        gai_strerror(result));
    return 0;
}

static bool is_numeric(const char *host)
{
    unsigned char address[sizeof(struct in6_addr)];
    return inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1;
}

int stw_resolve_by(stw_lookup_fn *lookup, const char *host, uint64_t timeout_ms,
                   struct stw_addresses *ret, struct stw_error *err)
{
    if (is_numeric(host)) {
        ret->count = 1;
        stw_format(ret->text[0], sizeof(ret->text[0]), "%s", host);
        return 0;
    }
    struct lookup *l = make_lookup(lookup, host);
    if (!l)
        return stw_fail(err, STW_ERR_UNAVAILABLE, "no memory to look up the host");
    int r = start_lookup(l, err) == 0 ? wait_for_lookup(l, timeout_ms, ret, err) : -1;
    unref_lookup(l);
    return r;
}

int stw_resolve(const char *host, uint64_t timeout_ms, struct stw_addresses *ret,
                struct stw_error *err)
{
    return stw_resolve_by(getaddrinfo, host, timeout_ms, ret, err);
}

int stw_target_resolve(const struct stw_target *t, struct stw_addresses *ret, struct stw_fault *f)
{
    struct stw_error err = {0};
    if (stw_resolve(t->host, (uint64_t)t->connect_timeout_seconds * 1000, ret, &err) == 0)
        return 0;
    f->lost = true;
    f->timeout = err.code == STW_ERR_TIMEOUT;
    return stw_fault_set(f, STW_SQL_CONNECT, STW_SQL_STEP_CONNECT, "%s", err.text);
}
