/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/zones.h"

#include "base/table.h"
#include "base/thread.h"
#include "base/util.h"

#include <assert.h>
#include <ctype.h>
#include <pthread.h>

#define ZONES_MAX 2048 /* the tz database has about 600 names */
#define NAME_MAX_LEN 64

struct zone_entry {
    char *name;
    struct stw_zone *zone;
};

struct stw_zones {
    stw_zone_read_fn *read;
    pthread_mutex_t lock; /* guards the table; entries are never removed */
    struct stw_table table;
};

static const char *entry_name(const void *entry)
{
    return ((const struct zone_entry *)entry)->name;
}

static void destroy_entry(void *entry)
{
    struct zone_entry *e = entry;
    stw_zone_destroy(e->zone);
    free(e->name);
    free(e);
}

struct stw_zones *stw_zones_create(stw_zone_read_fn *read)
{
    assert(read);
    struct stw_zones *z = calloc(1, sizeof(*z));
    if (!z)
        return NULL;
    z->read = read;
    z->table = STW_TABLE_INIT(entry_name);
    (void)pthread_mutex_init(&z->lock, NULL);
    return z;
}

void stw_zones_destroy(struct stw_zones *z)
{
    if (!z)
        return;
    stw_table_release(&z->table, destroy_entry);
    (void)pthread_mutex_destroy(&z->lock);
    free(z);
}

/* Files and folders next to the zones: copies with and without leap seconds, the machine's own
 * zone. */
static bool is_reserved(const char *name)
{
    static const char *const reserved[] = {"posix/", "right/", "posixrules", "localtime", "Local"};
    for (size_t i = 0; i < STW_COUNT(reserved); i++)
        if (strncmp(name, reserved[i], strlen(reserved[i])) == 0)
            return true;
    return false;
}

bool stw_zone_name_ok(const char *name)
{
    char before = '/';
    if (strlen(name) > NAME_MAX_LEN || is_reserved(name))
        return false;
    for (const char *c = name; *c; before = *c++) {
        if (*c == '/' ? before == '/' : !isalnum((unsigned char)*c) && !strchr("_+-", *c))
            return false;
    }
    return before != '/';
}

static struct stw_zone *load_zone(struct stw_zones *z, const char *name)
{
    struct stw_zone *ret = NULL;
    struct stw_error err = {0};
    stw_autofree char *data = NULL;
    size_t len = 0;
    if (z->read(name, STW_ZONE_FILE_MAX, &data, &len, &err) == 0)
        (void)stw_zone_parse(data, len, &ret, &err);
    return ret;
}

static struct zone_entry *make_entry(struct stw_zones *z, const char *name)
{
    struct zone_entry *e = calloc(1, sizeof(*e));
    void *old;
    if (!e)
        return NULL;
    e->name = strdup(name);
    e->zone = load_zone(z, name);
    if (e->name && e->zone && stw_table_size(&z->table) < ZONES_MAX &&
        stw_table_put(&z->table, e, &old) == 0)
        return e;
    destroy_entry(e);
    return NULL;
}

const struct stw_zone *stw_zones_get(struct stw_zones *z, const char *name)
{
    struct zone_entry *e;
    if (stw_streq(name, "Etc/UTC") || stw_streq(name, "UTC"))
        return &stw_zone_utc;
    if (!stw_zone_name_ok(name))
        return NULL;
    STW_LOCKED(&z->lock);
    e = stw_table_get(&z->table, name);
    if (!e)
        e = make_entry(z, name);
    return e ? e->zone : NULL;
}
