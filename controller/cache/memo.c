/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/cache/memo.h"

#include "base/thread.h"

#include <pthread.h>

#define PLACES 1024U

struct memo_place {
    struct stw_hash id; /* hash of `what` and the inputs */
    struct stw_digests result;
    bool taken;
};

struct stw_memo {
    pthread_mutex_t lock;
    struct memo_place places[PLACES]; /* untouched pages take no memory */
};

struct stw_memo *stw_memo_create(void)
{
    struct stw_memo *m = calloc(1, sizeof(*m));
    if (m && pthread_mutex_init(&m->lock, NULL) != 0) {
        free(m);
        return NULL;
    }
    return m;
}

void stw_memo_destroy(struct stw_memo *m)
{
    if (!m)
        return;
    pthread_mutex_destroy(&m->lock);
    free(m);
}

static struct stw_hash id_of(const char *what, struct stw_hash inputs)
{
    struct stw_hash both[2] = {stw_hash_bytes(what, strlen(what)), inputs};
    return stw_hash_bytes(both, sizeof(both));
}

bool stw_memo_get(struct stw_memo *m, const char *what, struct stw_hash inputs,
                  struct stw_digests *ret)
{
    struct stw_hash id = id_of(what, inputs);
    STW_LOCKED(&m->lock);
    const struct memo_place *p = &m->places[id.lo % PLACES];
    bool known = p->taken && stw_hash_equal(p->id, id);
    if (known)
        *ret = p->result;
    return known;
}

void stw_memo_put(struct stw_memo *m, const char *what, struct stw_hash inputs,
                  struct stw_digests result)
{
    struct stw_hash id = id_of(what, inputs);
    STW_LOCKED(&m->lock);
    m->places[id.lo % PLACES] = (struct memo_place){.id = id, .result = result, .taken = true};
}
