/* SPDX-License-Identifier: Apache-2.0
 *
 * The password of a DatabaseUser.  The cache has only the version of its Secret; the value is read
 * when it is needed and wiped after use. */
#include "kinds/databaseuser/secret/secret.h"

#include "base/table.h"
#include "base/thread.h"
#include "base/util.h"
#include "controller/secret_watch.h"
#include "kube/secret.h"

#include <pthread.h>

/* --- the value */

/* Some readers use the length, and others the NUL. */
static void cut_value(struct stw_buf *value, size_t len)
{
    stw_wipe(value->data + len, value->len - len);
    value->len = len;
}

void dbu_secret_take(struct stw_json secret, const char *key, bool trim_newline,
                     struct dbu_secret *ret)
{
    struct stw_json value = stw_secret_entry(secret, key);
    ret->value = (struct stw_buf){.max = STW_RESPONSE_MAX_BYTES, .secret = true};
    (void)stw_json_strcpy(stw_json_path(secret, "metadata.resourceVersion"), ret->resource_version,
                          sizeof(ret->resource_version));
    ret->state = DBU_SECRET_NO_KEY;
    if (!stw_json_there(value))
        return;
    ret->state = DBU_SECRET_ERROR;
    if (stw_base64_json(value, &ret->value) != 0) {
        (void)stw_fail(&ret->err, STW_ERR_INTERNAL, "the value cannot be decoded");
        return;
    }
    size_t bare = stw_bare_len(stw_buf_str(&ret->value), ret->value.len);
    ret->state = bare == 0 ? DBU_SECRET_EMPTY : DBU_SECRET_FOUND;
    ret->newline = !trim_newline && bare < ret->value.len;
    if (trim_newline && bare < ret->value.len)
        cut_value(&ret->value, bare);
}

/* Returns at least the version that the watch has reported.  If the API server's own cache is
 * older, the read is repeated from its store. */
static int get_since(struct stw_run *run, const char *name, const char *version,
                     struct stw_secret *ret, struct stw_error *err)
{
    struct stw_error behind = {0};
    if (stw_run_get_secret(run, name, version, ret, &behind) == 0)
        return 0;
    if (run->waits) {
        *err = behind;
        return -1;
    }
    stw_secret_done(ret);
    return stw_run_get_secret(run, name, NULL, ret, err);
}

bool dbu_secret_version(struct stw_run *run, const char *name, char ret_version[STW_RV_LEN])
{
    char key[STW_KEY_LEN];
    stw_autobuf struct stw_buf text = STW_BUF_INIT(4096);
    stw_key_make(run->ns, name, key);
    return stw_informer_get(stw_run_cache(run, &stw_watch_secrets), key, &text, ret_version) == 0;
}

void dbu_secret_read(struct stw_run *run, const struct dbu_spec_password *from,
                     struct dbu_secret *ret)
{
    stw_autosecret struct stw_secret s = {0};
    char version[STW_RV_LEN];
    *ret = (struct dbu_secret){.state = DBU_SECRET_MISSING};
    if (!dbu_secret_version(run, from->name, version))
        return;
    if (get_since(run, from->name, version, &s, &ret->err) == 0)
        dbu_secret_take(stw_json_root(&s.doc), from->key, from->trim_newline, ret);
    else if (ret->err.code != STW_ERR_NOT_FOUND)
        ret->state = DBU_SECRET_ERROR;
}

void dbu_secret_done(struct dbu_secret *s)
{
    stw_buf_done(&s->value);
}

/* --- compared passwords */

struct compared {
    struct stw_hash secret, stored;
    char key[];
};

struct dbu_compared {
    pthread_mutex_t lock;
    struct stw_table table;
};

static const char *compared_key(const void *entry)
{
    return ((const struct compared *)entry)->key;
}

struct dbu_compared *dbu_compared_create(void)
{
    struct dbu_compared *c = calloc(1, sizeof(*c));
    if (!c)
        return NULL;
    (void)pthread_mutex_init(&c->lock, NULL);
    c->table = STW_TABLE_INIT(compared_key);
    return c;
}

void dbu_compared_destroy(struct dbu_compared *c)
{
    if (!c)
        return;
    stw_table_release(&c->table, free);
    (void)pthread_mutex_destroy(&c->lock);
    free(c);
}

static struct compared *make_compared(struct dbu_compared *c, const char *key)
{
    size_t len = strlen(key) + 1;
    void *old;
    struct compared *e = calloc(1, sizeof(*e) + len);
    if (!e)
        return NULL;
    memcpy(e->key, key, len);
    if (stw_table_put(&c->table, e, &old) == 0)
        return e;
    free(e);
    return NULL;
}

void dbu_compared_put(struct dbu_compared *c, const char *key, struct stw_hash secret,
                      struct stw_hash stored)
{
    STW_LOCKED(&c->lock);
    struct compared *e = stw_table_get(&c->table, key);
    if (!e)
        e = make_compared(c, key);
    if (e) {
        e->secret = secret;
        e->stored = stored;
    }
}

struct stw_hash dbu_compared_get(struct dbu_compared *c, const char *key, struct stw_hash secret)
{
    struct stw_hash stored = {0};
    STW_LOCKED(&c->lock);
    const struct compared *e = stw_table_get(&c->table, key);
    if (e && stw_hash_equal(e->secret, secret))
        stored = e->stored;
    return stored;
}

void dbu_compared_forget(struct dbu_compared *c, const char *key)
{
    STW_LOCKED(&c->lock);
    free(stw_table_remove(&c->table, key));
}

int dbu_secret_text(struct stw_client *client, const char *ns, const char *name, const char *key,
                    struct stw_buf *ret, struct stw_error *err)
{
    stw_autosecret struct stw_secret from = {0};
    struct dbu_secret s = {0};
    if (stw_secret_get(client, ns, name, &from, err) != 0)
        return stw_error_wrap(err, "the admin's password in Secret %s/%s", ns, name);
    dbu_secret_take(stw_json_root(&from.doc), key, true, &s);
    if (s.state == DBU_SECRET_FOUND)
        stw_buf_add(ret, s.value.data, s.value.len);
    bool found = s.state == DBU_SECRET_FOUND;
    dbu_secret_done(&s);
    if (found)
        return 0;
    return stw_fail(err, STW_ERR_INVALID,
                    "Secret %s/%s has no value under the key \"%s\", where the admin's password "
                    "should be",
                    ns, name, key);
}
