/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/cache/unreadable_priv.h"

#include "base/json.h"
#include "base/thread.h"
#include "base/util.h"

#include <string.h>

#define WHY_LEN 160
#define LOG_BURST 20
#define LOG_EVERY_MS 10000 /* a line beyond the burst */

/* --- what such an object is */

struct span {
    const char *at, *end;
};

static void skip_blanks(struct span *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\t' || *s->at == '\n' || *s->at == '\r'))
        s->at++;
}

/* A string from its opening quote, without the quotes.  Stops at the end of the text. */
static struct span take_string(struct span *s)
{
    struct span text = {.at = ++s->at};
    while (s->at < s->end && *s->at != '"')
        s->at += *s->at == '\\' && s->end - s->at > 1 ? 2 : 1;
    text.end = s->at;
    s->at += s->at < s->end;
    return text;
}

static struct span take_value(struct span *s)
{
    struct span value = {.at = s->at};
    if (s->at < s->end && *s->at == '"') {
        (void)take_string(s);
    } else if (s->at < s->end && (*s->at == '{' || *s->at == '[')) {
        bool ended;
        struct stw_json_skim skim = {0};
        s->at += stw_json_skim(&skim, s->at, (size_t)(s->end - s->at), &ended);
    } else {
        while (s->at < s->end && !strchr(",}] \t\r\n", *s->at))
            s->at++;
    }
    value.end = s->at;
    return value;
}

/* The value of a member of the object that the text begins with, as far as the text goes; empty
 * when there is none. */
static struct span find_member(struct span object, const char *key)
{
    const struct span none = {.at = "", .end = ""};
    struct span s = object;
    skip_blanks(&s);
    if (s.at == s.end || *s.at != '{')
        return none;
    s.at++;
    for (;;) {
        skip_blanks(&s);
        if (s.at == s.end || *s.at != '"')
            return none;
        struct span name = take_string(&s);
        skip_blanks(&s);
        if (s.at == s.end || *s.at != ':')
            return none;
        s.at++;
        skip_blanks(&s);
        struct span value = take_value(&s);
        size_t len = (size_t)(name.end - name.at);
        if (len == strlen(key) && memcmp(name.at, key, len) == 0)
            return value;
        skip_blanks(&s);
        if (s.at == s.end || *s.at != ',')
            return none;
        s.at++;
    }
}

/* Names and versions have no escapes.  "" when it is not such a text, or is cut. */
static void copy_word(struct span object, const char *key, char *out, size_t size)
{
    struct span v = find_member(object, key);
    size_t len = (size_t)(v.end - v.at);
    *out = '\0';
    if (len < 2 || *v.at != '"' || v.end[-1] != '"' || len - 2 >= size)
        return;
    for (const char *p = v.at + 1; p < v.end - 1; p++)
        if (*p <= ' ' || *p >= 0x7f || *p == '\\' || *p == '"')
            return;
    memcpy(out, v.at + 1, len - 2);
    out[len - 2] = '\0';
}

static void identify(struct span object, struct stw_unreadable_id *ret)
{
    char ns[254], name[254];
    struct span meta = find_member(object, "metadata");
    copy_word(meta, "namespace", ns, sizeof(ns));
    copy_word(meta, "name", name, sizeof(name));
    copy_word(meta, "resourceVersion", ret->rv, sizeof(ret->rv));
    ret->key[0] = '\0';
    if (*name)
        stw_key_make(ns, name, ret->key);
}

void stw_unreadable_identify(const char *text, size_t len, struct stw_unreadable_id *ret)
{
    identify((struct span){text, text + len}, ret);
}

void stw_unreadable_identify_event(const char *text, size_t len, char ret_type[16],
                                   struct stw_unreadable_id *ret)
{
    struct span event = {text, text + len};
    copy_word(event, "type", ret_type, 16);
    identify(find_member(event, "object"), ret);
}

/* --- which there are */

struct mark {
    const struct stw_unreadable_scope *scope;
    uint32_t list;
    bool placed;
    char why[WHY_LEN];
    char key[];
};

static const char *key_of(const void *mark)
{
    return ((const struct mark *)mark)->key;
}

void stw_unreadable_init(struct stw_unreadable *u)
{
    *u = (struct stw_unreadable){.log_tokens = LOG_BURST};
    u->marks = STW_TABLE_INIT(key_of);
    atomic_init(&u->marked, 0);
    (void)pthread_mutex_init(&u->lock, NULL);
}

void stw_unreadable_done(struct stw_unreadable *u)
{
    stw_table_release(&u->marks, free);
    (void)pthread_mutex_destroy(&u->lock);
}

static void count_marks(struct stw_unreadable *u)
{
    atomic_store(&u->marked, stw_table_size(&u->marks) + u->left_out);
}

static struct mark *add_mark(struct stw_unreadable *u, const char *key)
{
    void *old = NULL;
    size_t size = strlen(key) + 1;
    struct mark *m =
        stw_table_size(&u->marks) < STW_UNREADABLE_MAX ? calloc(1, sizeof(*m) + size) : NULL;
    if (!m)
        return NULL;
    memcpy(m->key, key, size);
    if (stw_table_put(&u->marks, m, &old) != 0) {
        free(m);
        return NULL;
    }
    return m;
}

static bool take_log_token(struct stw_unreadable *u, uint64_t now_ms)
{
    uint64_t more = now_ms > u->log_ms ? (now_ms - u->log_ms) / LOG_EVERY_MS : 0;
    if (more > 0) {
        u->log_tokens = (unsigned)STW_MIN(u->log_tokens + more, (uint64_t)LOG_BURST);
        u->log_ms += more * LOG_EVERY_MS;
    }
    if (u->log_tokens == 0)
        return false;
    u->log_tokens--;
    return true;
}

bool stw_unreadable_mark(struct stw_unreadable *u, const struct stw_unreadable_scope *scope,
                         const struct stw_unreadable_report *r, uint64_t now_ms,
                         uint32_t *ret_unlogged)
{
    char why[WHY_LEN];
    stw_format(why, sizeof(why), "%s", r->why);
    STW_LOCKED(&u->lock);
    struct mark *m = stw_table_get(&u->marks, r->key);
    bool known = m && stw_streq(m->why, why);
    if (!m)
        m = add_mark(u, r->key);
    u->left_out += !m;
    count_marks(u);
    if (m) {
        memcpy(m->why, why, sizeof(why));
        m->scope = scope;
        m->list = scope->list;
        m->placed = r->placed;
    }
    if (known)
        return false;
    *ret_unlogged = u->unlogged;
    bool log = take_log_token(u, now_ms);
    u->unlogged = log ? 0 : u->unlogged + 1;
    return log;
}

void stw_unreadable_clear(struct stw_unreadable *u, const char *key)
{
    if (atomic_load(&u->marked) == 0) /* nearly always */
        return;
    STW_LOCKED(&u->lock);
    free(stw_table_remove(&u->marks, key));
    count_marks(u);
}

void stw_unreadable_list_begin(struct stw_unreadable *u, struct stw_unreadable_scope *scope)
{
    STW_LOCKED(&u->lock);
    scope->list++;
    u->left_out = 0;
    count_marks(u);
}

void stw_unreadable_sweep(struct stw_unreadable *u, const struct stw_unreadable_scope *scope)
{
    uint32_t pos = 0;
    if (atomic_load(&u->marked) == 0)
        return;
    STW_LOCKED(&u->lock);
    for (struct mark *m; (m = stw_table_next(&u->marks, &pos));)
        if (m->scope == scope && m->list != scope->list)
            free(stw_table_remove(&u->marks, m->key));
    count_marks(u);
}

uint32_t stw_unreadable_count(const struct stw_unreadable *u)
{
    return atomic_load(&u->marked);
}

bool stw_unreadable_get(struct stw_unreadable *u, const char *key, char *why, size_t why_size)
{
    if (atomic_load(&u->marked) == 0)
        return false;
    STW_LOCKED(&u->lock);
    const struct mark *m = stw_table_get(&u->marks, key);
    if (m && why)
        stw_format(why, why_size, "%s", m->why);
    return m;
}

uint32_t stw_unreadable_each(struct stw_unreadable *u,
                             void (*fn)(void *ctx, const char *key, const char *place,
                                        const char *why),
                             void *ctx)
{
    uint32_t pos = 0;
    STW_LOCKED(&u->lock);
    for (const struct mark *m; (m = stw_table_next(&u->marks, &pos));)
        fn(ctx, m->placed ? NULL : m->key, m->placed ? m->key : "", m->why);
    return u->left_out;
}
