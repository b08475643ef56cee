/* SPDX-License-Identifier: Apache-2.0
 *
 * The ready keys: a list for each namespace and priority.  The namespaces of one priority form a
 * list, too: the first one hands out one key and moves to the end. */
#include "base/util.h"
#include "controller/queue_priv.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_LEN 253

struct entry_list {
    struct stw_queue_entry *first, *last;
};

/* A namespace with keys in the queue, ready or not. */
struct stw_queue_tenant {
    struct stw_queue_tenant *prev[STW_QUEUE_PRIORITIES], *next[STW_QUEUE_PRIORITIES];
    struct entry_list ready[STW_QUEUE_PRIORITIES];
    uint32_t entries;
    char name[];
};

static const char *tenant_key(const void *tenant)
{
    return ((const struct stw_queue_tenant *)tenant)->name;
}

void stw_queue_ready_init(struct stw_queue_ready *r)
{
    *r = (struct stw_queue_ready){.tenants = STW_TABLE_INIT(tenant_key)};
}

void stw_queue_ready_done(struct stw_queue_ready *r)
{
    stw_table_release(&r->tenants, free);
}

static struct stw_queue_tenant *add_tenant(struct stw_queue_ready *r, const char *name)
{
    size_t len = strlen(name) + 1;
    struct stw_queue_tenant *ret = calloc(1, sizeof(*ret) + len);
    void *old;
    if (!ret)
        return NULL;
    memcpy(ret->name, name, len);
    if (stw_table_put(&r->tenants, ret, &old) != 0) {
        free(ret);
        return NULL;
    }
    return ret;
}

int stw_queue_ready_attach(struct stw_queue_ready *r, struct stw_queue_entry *e)
{
    char name[NAME_MAX_LEN + 1] = "";
    const char *slash = strchr(e->key, '/');
    if (slash && (size_t)(slash - e->key) < sizeof(name))
        memcpy(name, e->key, (size_t)(slash - e->key));
    e->tenant = stw_table_get(&r->tenants, name);
    if (!e->tenant)
        e->tenant = add_tenant(r, name);
    if (!e->tenant)
        return -1;
    e->tenant->entries++;
    return 0;
}

void stw_queue_ready_detach(struct stw_queue_ready *r, struct stw_queue_entry *e)
{
    struct stw_queue_tenant *t = e->tenant;
    assert(!t || t->entries > 0);
    e->tenant = NULL;
    if (!t || --t->entries > 0)
        return;
    stw_table_remove(&r->tenants, t->name);
    free(t);
}

static void append_tenant(struct stw_queue_ready *r, struct stw_queue_tenant *t, int p)
{
    t->prev[p] = r->last[p];
    t->next[p] = NULL;
    if (r->last[p])
        r->last[p]->next[p] = t;
    else
        r->first[p] = t;
    r->last[p] = t;
}

static void remove_tenant(struct stw_queue_ready *r, struct stw_queue_tenant *t, int p)
{
    if (t->prev[p])
        t->prev[p]->next[p] = t->next[p];
    else
        r->first[p] = t->next[p];
    if (t->next[p])
        t->next[p]->prev[p] = t->prev[p];
    else
        r->last[p] = t->prev[p];
}

void stw_queue_ready_append(struct stw_queue_ready *r, struct stw_queue_entry *e)
{
    assert(e->tenant);
    int p = e->resync;
    struct entry_list *list = &e->tenant->ready[p];
    if (!list->first)
        append_tenant(r, e->tenant, p);
    e->prev = list->last;
    e->next = NULL;
    if (list->last)
        list->last->next = e;
    else
        list->first = e;
    list->last = e;
    r->count++;
}

void stw_queue_ready_remove(struct stw_queue_ready *r, struct stw_queue_entry *e)
{
    assert(e->tenant && r->count > 0);
    int p = e->resync;
    struct entry_list *list = &e->tenant->ready[p];
    if (e->prev)
        e->prev->next = e->next;
    else
        list->first = e->next;
    if (e->next)
        e->next->prev = e->prev;
    else
        list->last = e->prev;
    if (!list->first)
        remove_tenant(r, e->tenant, p);
    r->count--;
}

struct stw_queue_entry *stw_queue_ready_first(const struct stw_queue_ready *r)
{
    for (int p = 0; p < STW_QUEUE_PRIORITIES; p++)
        if (r->first[p])
            return r->first[p]->ready[p].first;
    return NULL;
}

void stw_queue_ready_take(struct stw_queue_ready *r, struct stw_queue_entry *e)
{
    int p = e->resync;
    struct stw_queue_tenant *t = e->tenant;
    stw_queue_ready_remove(r, e);
    if (!t->ready[p].first)
        return;
    remove_tenant(r, t, p);
    append_tenant(r, t, p);
}
