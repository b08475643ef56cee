/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts the tree to JSON.  Follows aliases and applies merge keys within a budget of steps and
 * bytes, so that a small file cannot become a large one.  Recursion ends at STW_JSON_MAX_DEPTH. */
#include "base/json.h"
#include "base/util.h"
#include "base/yaml/yaml_priv.h"

#define ALIASES_TOO_LARGE "the document grows too large when its aliases are written out"

struct writer {
    struct yaml_tree *tree;
    struct stw_buf *out;
    struct stw_yaml_marks *marks;
    struct yaml_place *place;
    struct stw_error *err;
    uint32_t work; /* steps left */
    size_t bytes;  /* of texts that may still be read */
    uint32_t maps; /* maps read so far: distinguishes a map's own keys from merged ones */
    /* Values and keys written so far, and how many of them by way of an alias. */
    uint32_t written, aliased;
    uint32_t aliases; /* that lead to the value at hand */
};

/* A member of the object being built. */
struct yaml_member {
    const char *key;
    uint32_t value;        /* node */
    uint32_t map;          /* which map it came from */
    uint32_t aliases;      /* that lead to this map */
    uint32_t line, column; /* of the key */
};

struct members {
    struct stw_table index;
    struct yaml_member **list; /* in order of first appearance */
    uint32_t count, cap;
};

static int fail_at(struct writer *w, const struct yaml_node *n, enum stw_err code, const char *what)
{
    w->place->line = n->line;
    w->place->column = n->column;
    return stw_fail(w->err, code, "%s", what);
}

/* For errors already set by a callee. */
static int failed_at(struct writer *w, const struct yaml_node *n)
{
    w->place->line = n->line;
    w->place->column = n->column;
    return -1;
}

static int spend_work_step(struct writer *w, const struct yaml_node *n)
{
    if (w->out->failed || w->work == 0)
        return fail_at(w, n, STW_ERR_TOO_LARGE, ALIASES_TOO_LARGE);
    w->work--;
    return 0;
}

static int spend_text(struct writer *w, const struct yaml_node *n)
{
    if (n->len > w->bytes)
        return fail_at(w, n, STW_ERR_TOO_LARGE, ALIASES_TOO_LARGE);
    w->bytes -= n->len;
    return 0;
}

/* go-yaml refuses a document that consists of aliases for the most part. */
static bool is_mostly_aliases(const struct writer *w)
{
    const double low = 400000, high = 4000000;
    double most = 0.98, written = w->written;
    if (w->aliased <= 100 || w->written <= 1000)
        return false;
    if (written > low)
        most -= 0.89 * (STW_MIN(written, high) - low) / (high - low);
    return w->aliased > most * written;
}

static int count_written(struct writer *w, const struct yaml_node *n, uint32_t values)
{
    w->written += values;
    if (w->aliases > 0)
        w->aliased += values;
    return is_mostly_aliases(w) ? fail_at(w, n, STW_ERR_TOO_LARGE, ALIASES_TOO_LARGE) : 0;
}

static const char *member_key(const void *entry)
{
    const struct yaml_member *m = entry;
    return m->key;
}

static void members_done(struct members *m)
{
    stw_table_done(&m->index);
    free(m->list);
}

static int members_add(struct writer *w, struct members *m, const struct yaml_member *add)
{
    if (m->count == m->cap) {
        uint32_t cap = m->cap ? m->cap * 2 : 16;
        struct yaml_member **list = reallocarray(m->list, cap, sizeof(struct yaml_member *));
        if (!list)
            return -1;
        m->list = list;
        m->cap = cap;
    }
    struct yaml_member *copy = yaml_alloc(w->tree, sizeof(*copy));
    if (!copy)
        return -1;
    *copy = *add;
    if (stw_table_put(&m->index, copy, NULL) != 0)
        return -1;
    m->list[m->count++] = copy;
    return 0;
}

static const struct yaml_node *follow_aliases(const struct writer *w, const struct yaml_node *n)
{
    while (n->kind == YAML_KIND_ALIAS)
        n = &w->tree->nodes[n->first];
    return n;
}

static bool is_merge(const struct yaml_node *key)
{
    return key->kind == YAML_KIND_SCALAR && stw_streq(key->text, "<<") &&
           ((key->tag == YAML_TAG_NONE && key->plain) || key->tag == YAML_TAG_MERGE);
}

static int key_text(struct writer *w, const struct yaml_node *key, const char **ret)
{
    const struct yaml_node *n = follow_aliases(w, key);
    struct yaml_value v;
    if (n->kind != YAML_KIND_SCALAR)
        return fail_at(w, key, STW_ERR_INVALID, "a key must be a text, not a list or a map");
    if (spend_text(w, n) != 0)
        return -1;
    if (yaml_resolve(w->tree, n, &v, w->err) != 0 || yaml_value_key(w->tree, &v, ret, w->err) != 0)
        return failed_at(w, key);
    return 0;
}

static int write_node(struct writer *w, const struct yaml_node *n, uint32_t mark, unsigned depth);

/* A value that a merge replaces must be valid, too. */
static int check_replaced(struct writer *w, const struct yaml_member *m, unsigned depth)
{
    stw_autobuf struct stw_buf unused = STW_BUF_INIT(YAML_JSON_MAX);
    struct writer quiet = *w;
    unused.secret = true;
    quiet.out = &unused;
    quiet.marks = NULL;
    int rc = write_node(&quiet, follow_aliases(w, &w->tree->nodes[m->value]), 0, depth);
    w->work = quiet.work;
    w->bytes = quiet.bytes;
    w->maps = quiet.maps;
    w->written = quiet.written;
    w->aliased = quiet.aliased;
    return rc;
}

/* Adds one `key: value`.  A key that came from a merge, or that a merge repeats, is replaced. */
static int put_member(struct writer *w, struct members *m, const struct yaml_node *key,
                      uint32_t map, unsigned depth)
{
    struct yaml_member add = {.value = key->next,
                              .map = map,
                              .aliases = w->aliases,
                              .line = key->line,
                              .column = key->column};
    if (key_text(w, key, &add.key) != 0)
        return -1;
    struct yaml_member *known = stw_table_get(&m->index, add.key);
    if (known && known->map == map) {
        (void)failed_at(w, key);
        return stw_fail(w->err, STW_ERR_INVALID, "the key \"%.64s\" is there already, in line %u",
                        add.key, known->line);
    }
    if (known) {
        if (check_replaced(w, known, depth) != 0)
            return -1;
        add.key = known->key;
        *known = add;
        return 0;
    }
    if (members_add(w, m, &add) != 0)
        return fail_at(w, key, STW_ERR_INTERNAL, "out of memory");
    return 0;
}

static int put_map(struct writer *w, struct members *m, const struct yaml_node *map,
                   unsigned depth);

static int bad_merge(struct writer *w, const struct yaml_node *n)
{
    return fail_at(w, n, STW_ERR_INVALID, "a merge key (<<) needs a map or a list of maps");
}

static int merge_map(struct writer *w, struct members *m, const struct yaml_node *value,
                     const struct yaml_node *map, unsigned depth)
{
    bool alias = value->kind == YAML_KIND_ALIAS;
    w->aliases += alias;
    int rc = put_map(w, m, map, depth + 1);
    w->aliases -= alias;
    return rc;
}

static int put_merge_items(struct writer *w, struct members *m, const uint32_t *items,
                           uint32_t count, unsigned depth)
{
    while (count-- > 0) {
        const struct yaml_node *item = &w->tree->nodes[items[count]],
                               *map = follow_aliases(w, item);
        if (spend_work_step(w, item) != 0)
            return -1;
        if (map->kind != YAML_KIND_MAP)
            return bad_merge(w, item);
        if (merge_map(w, m, item, map, depth) != 0)
            return -1;
    }
    return 0;
}

/* Adds the maps of a merge list, last one first: the earlier ones win. */
static int put_merge_list(struct writer *w, struct members *m, const struct yaml_node *list,
                          unsigned depth)
{
    uint32_t count = 0, i = 0;
    for (uint32_t at = list->first; at; at = w->tree->nodes[at].next)
        count++;
    uint32_t *items = calloc((size_t)count + 1, sizeof(*items));
    if (!items)
        return fail_at(w, list, STW_ERR_INTERNAL, "out of memory");
    for (uint32_t at = list->first; at; at = w->tree->nodes[at].next)
        items[i++] = at;
    int rc = put_merge_items(w, m, items, count, depth);
    free(items);
    return rc;
}

static int put_merge(struct writer *w, struct members *m, const struct yaml_node *value,
                     unsigned depth)
{
    const struct yaml_node *n = follow_aliases(w, value);
    if (n->kind == YAML_KIND_MAP)
        return merge_map(w, m, value, n, depth);
    /* go-yaml accepts a list only directly, not through an alias. */
    if (value->kind == YAML_KIND_SEQ)
        return put_merge_list(w, m, value, depth);
    return bad_merge(w, value);
}

/* Adds all members of a map in their order.  A merge applies at its position, as in kubectl: what
 * comes later wins. */
static int put_map(struct writer *w, struct members *m, const struct yaml_node *map, unsigned depth)
{
    uint32_t id = ++w->maps;
    if (depth > STW_JSON_MAX_DEPTH)
        return fail_at(w, map, STW_ERR_TOO_LARGE, "nested too deeply");
    for (uint32_t at = map->first; at; at = w->tree->nodes[w->tree->nodes[at].next].next) {
        const struct yaml_node *key = &w->tree->nodes[at];
        if (spend_work_step(w, key) != 0)
            return -1;
        int rc = is_merge(key) ? put_merge(w, m, &w->tree->nodes[key->next], depth)
                               : put_member(w, m, key, id, depth);
        if (rc != 0)
            return -1;
    }
    return 0;
}

/* A child of a collection, with its mark: where its value is, or where its key is if that is on a
 * line above. */
static int write_child(struct writer *w, uint32_t at, const struct yaml_member *member,
                       uint32_t mark, unsigned depth)
{
    const struct yaml_node *written = &w->tree->nodes[at], *n = follow_aliases(w, written);
    uint32_t own = 0, aliases = w->aliases;
    if (w->marks) {
        bool above = member && member->line < n->line;
        own = yaml_marks_add(w->marks, mark, member ? member->key : NULL,
                             above ? (struct yaml_place){member->line, member->column}
                                   : (struct yaml_place){n->line, n->column});
        if (own == UINT32_MAX)
            return fail_at(w, n, STW_ERR_INTERNAL, "out of memory");
    }
    if (member)
        w->aliases = STW_MAX(aliases, member->aliases);
    if (count_written(w, n, member ? 2 : 1) != 0)
        return -1;
    if (written->kind == YAML_KIND_ALIAS) {
        w->aliases++;
        if (count_written(w, n, 1) != 0)
            return -1;
    }
    int rc = write_node(w, n, own, depth);
    w->aliases = aliases;
    return rc;
}

static int write_map(struct writer *w, const struct yaml_node *map, uint32_t mark, unsigned depth)
{
    struct members m = {.index = STW_TABLE_INIT(member_key)};
    int rc = put_map(w, &m, map, depth);

    stw_buf_addc(w->out, '{');
    for (uint32_t i = 0; rc == 0 && i < m.count; i++) {
        if (i > 0)
            stw_buf_addc(w->out, ',');
        stw_buf_json_strz(w->out, m.list[i]->key);
        stw_buf_addc(w->out, ':');
        rc = write_child(w, m.list[i]->value, m.list[i], mark, depth);
    }
    stw_buf_addc(w->out, '}');
    members_done(&m);
    return rc;
}

static int write_list(struct writer *w, const struct yaml_node *list, uint32_t mark, unsigned depth)
{
    stw_buf_addc(w->out, '[');
    for (uint32_t at = list->first; at; at = w->tree->nodes[at].next) {
        if (at != list->first)
            stw_buf_addc(w->out, ',');
        if (write_child(w, at, NULL, mark, depth) != 0)
            return -1;
    }
    stw_buf_addc(w->out, ']');
    return 0;
}

static int write_node(struct writer *w, const struct yaml_node *n, uint32_t mark, unsigned depth)
{
    struct yaml_value v;
    if (spend_work_step(w, n) != 0)
        return -1;
    if (n->kind == YAML_KIND_SCALAR) {
        if (spend_text(w, n) != 0)
            return -1;
        if (yaml_resolve(w->tree, n, &v, w->err) != 0 || yaml_value_json(&v, w->out, w->err) != 0)
            return failed_at(w, n);
        return 0;
    }
    if (depth == STW_JSON_MAX_DEPTH)
        return fail_at(w, n, STW_ERR_TOO_LARGE, "nested too deeply");
    return (n->kind == YAML_KIND_MAP ? write_map : write_list)(w, n, mark, depth + 1);
}

int yaml_write(struct yaml_tree *t, struct stw_buf *out, struct stw_yaml_marks *marks,
               struct yaml_place *place, struct stw_error *err)
{
    struct writer w = {.tree = t,
                       .out = out,
                       .marks = marks,
                       .place = place,
                       .err = err,
                       .work = YAML_WORK_MAX,
                       .bytes = YAML_READ_MAX};
    const struct yaml_node *root = follow_aliases(&w, &t->nodes[0]);

    if (marks)
        yaml_marks_reset(marks, (struct yaml_place){root->line, root->column});
    if (write_node(&w, root, 0, 0) != 0)
        return -1;
    return out->failed ? fail_at(&w, root, STW_ERR_TOO_LARGE, YAML_TOO_LARGE) : 0;
}
