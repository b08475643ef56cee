/* SPDX-License-Identifier: Apache-2.0 */
#include "hostile/cases.h"

#include "base/util.h"
#include "base/yaml/yaml.h"
#include "hostile/values.h"
#include "schema/rule/kind_priv.h"

#include <assert.h>
#include <stdio.h>

#define STEPS_MAX 32
#define PATH_MAX_BYTES 512
#define NODES_MAX 8192
#define GROWN 3           /* valid objects that are grown from the sample, in different orders */
#define SINGLE_MAX 15000U /* objects with one change */
#define TEXT_MAX ((size_t)64 << 20)

/* A field: the steps to it from the root, lists and maps by their first entry. */
struct place {
    const char *steps[STEPS_MAX];
    size_t depth;
    const struct stw_field *row;
    uint32_t first; /* number of its first object */
    bool arrived;   /* a hostile value of it could be read */
};

/* What is done to a node, besides replacing it. */
enum change { DROP, REPEAT, SWAP, RENAME, WRONG_TYPE, EMPTY, NO_VALUE, CHANGES };

struct hostile_cases {
    const struct stw_kind *kind;
    const struct stw_env *env;
    uint64_t seed;
    struct tree_arena kept, scratch;
    struct place *places;
    uint32_t place_count, place_room;
    uint32_t fields; /* objects of the places */
    struct tree *valid[GROWN + 1];
    uint32_t valid_count;
    struct tree *full[GROWN + 2]; /* whose members are changed; the valid ones and a pod template */
    uint32_t full_nodes[GROWN + 2], full_count;
    uint32_t changes;
    struct tree_place *nodes;
};

uint64_t hostile_next(struct hostile_random *r)
{
    uint64_t z = (r->state += UINT64_C(0x9E3779B97F4A7C15));
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

uint32_t hostile_below(struct hostile_random *r, uint32_t n)
{
    return (uint32_t)(hostile_next(r) % n);
}

struct hostile_random hostile_cases_random(const struct hostile_cases *c, uint32_t number)
{
    struct stw_hash of_kind = stw_hash_bytes(c->kind->kind, strlen(c->kind->kind));
    struct hostile_random r = {c->seed ^ of_kind.lo ^ ((uint64_t)number << 32)};
    (void)hostile_next(&r);
    return r;
}

/* --- places */

static void add_row(struct hostile_cases *c, const struct place *at, const struct stw_field *row);

static void add_rows(struct hostile_cases *c, const struct place *at, const struct stw_field *rows)
{
    for (; rows && rows->name; rows++) {
        struct place p = *at;
        assert(p.depth < STEPS_MAX);
        p.steps[p.depth++] = rows->name;
        add_row(c, &p, rows);
    }
}

static void add_row(struct hostile_cases *c, const struct place *at, const struct stw_field *row)
{
    struct place entry = *at;
    if (c->place_count == c->place_room) {
        c->place_room = c->place_room ? 2 * c->place_room : 256;
        c->places = reallocarray(c->places, c->place_room, sizeof(*c->places));
        assert(c->places);
    }
    struct place *p = &c->places[c->place_count++];
    *p = *at;
    p->row = row;
    p->first = c->fields;
    c->fields += hostile_value_count(row) + 1; /* and its absence */
    add_rows(c, at, hostile_rows_below(row));
    if (row->item) {
        assert(entry.depth < STEPS_MAX);
        entry.steps[entry.depth++] = row->type == STW_T_MAP ? "a" : "0";
        add_row(c, &entry, row->item);
    }
}

/* metav1.ObjectMeta, which no kind has in its tables. */
static const struct stw_field text_item = {.name = "", .type = STW_T_STRING};
static const struct stw_field any_item = {.name = "", .type = STW_T_RAW};
static const struct stw_field metadata_rows[] = {
    {.name = "name", .type = STW_T_STRING, STW_RANGE(1, 253)},
    {.name = "generateName", .type = STW_T_STRING},
    {.name = "namespace", .type = STW_T_STRING, STW_RANGE(1, 63)},
    {.name = "uid", .type = STW_T_STRING},
    {.name = "resourceVersion", .type = STW_T_STRING},
    {.name = "generation", .type = STW_T_INT, STW_RANGE(0, INT64_MAX)},
    {.name = "creationTimestamp", .type = STW_T_STRING},
    {.name = "deletionTimestamp", .type = STW_T_STRING},
    {.name = "deletionGracePeriodSeconds", .type = STW_T_INT},
    {.name = "labels", .type = STW_T_MAP, .item = &text_item},
    {.name = "annotations", .type = STW_T_MAP, .item = &text_item},
    {.name = "finalizers", .type = STW_T_LIST, .item = &text_item},
    {.name = "ownerReferences", .type = STW_T_LIST, .item = &any_item},
    {.name = "managedFields", .type = STW_T_LIST, .item = &any_item},
    {0},
};
/* Members that steward reads, for changes of each. */
static const struct {
    const char *name, *json;
} metadata_members[] = {
    {"annotations",
     "{\"steward.dev/paused\":\"false\",\"steward.dev/adopt\":\"true\",\"steward.dev/"
     "force-delete\":"
     "\"true\",\"steward.dev/conversion\":\"{}\",\"steward.dev/update-template\":\"always\","
     "\"steward.dev/reconcile-at\":\"now\"}"},
    {"finalizers", "[\"example.com/a\",\"example.com/b\"]"},
    {"ownerReferences",
     "[{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":\"a\",\"uid\":\"b\",\"controller\":true}]"},
    {"managedFields", "[{\"manager\":\"a\",\"operation\":\"Apply\",\"fieldsV1\":{\"f:spec\":{}}}]"},
};

static void add_places(struct hostile_cases *c)
{
    struct place metadata = {.steps = {"metadata"}, .depth = 1};
    struct place spec = {.steps = {"spec"}, .depth = 1}, status = {.steps = {"status"}, .depth = 1};
    add_rows(c, &metadata, metadata_rows);
    add_rows(c, &spec, c->kind->spec);
    add_rows(c, &status, stw_status_common);
    add_rows(c, &status, c->kind->status);
}

static void path_of(const struct place *p, char out[PATH_MAX_BYTES])
{
    size_t len = 0;
    out[0] = '\0';
    for (size_t i = 0; i < p->depth && len < PATH_MAX_BYTES; i++)
        len += (size_t)snprintf(out + len, PATH_MAX_BYTES - len, "%s%s", i ? "." : "", p->steps[i]);
}

/* --- valid objects */

static bool judge(const struct hostile_cases *c, const struct tree *t, struct stw_buf *why)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(TEXT_MAX);
    stw_autojson struct stw_json_doc doc = {0};
    stw_autofindings struct stw_findings f = {0};
    tree_write(t, &text);
    if (stw_json_scan(&doc, stw_buf_str(&text), text.len, NULL) != 0)
        return false;
    struct stw_admission a = {.kind = c->kind,
                              .operation = STW_CREATE,
                              .ns = "shop",
                              .name = "web",
                              .object = stw_json_root(&doc),
                              .env = c->env};
    stw_kind_validate(&a, &f);
    if (why)
        stw_findings_text(&f, why);
    return f.error_count == 0 && !f.failed;
}

static bool is_valid(const struct hostile_cases *c, const struct tree *t)
{
    return judge(c, t, NULL);
}

static bool has(const struct tree *t, const struct place *p)
{
    for (size_t i = 0; t && i < p->depth; i++)
        t = tree_child(t, p->steps[i]);
    return t != NULL;
}

static void put_text(struct tree_arena *a, struct tree *root, const struct place *p,
                     const struct stw_buf *text)
{
    struct tree *value = tree_of_text(a, stw_buf_str(text), text->len);
    tree_put(a, root, p->steps, p->depth,
             value ? value : tree_raw(a, stw_buf_str(text), text->len));
}

/* Gives the field a value with which the object stays valid, if there is one. */
static struct tree *grow(struct hostile_cases *c, struct tree *t, const struct place *p)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(TEXT_MAX);
    uint32_t variants = p->row->type == STW_T_STRING && !p->row->values ? hostile_example_count : 2;
    if (has(t, p) || !stw_streq(p->steps[0], "spec"))
        return t;
    for (uint32_t i = 0; i < variants; i++) {
        struct tree *more = tree_copy(&c->kept, t);
        stw_buf_clear(&text);
        hostile_example(p->row, i, &text);
        put_text(&c->kept, more, p, &text);
        if (is_valid(c, more))
            return more;
    }
    return t;
}

static struct tree *grow_all(struct hostile_cases *c, uint32_t round)
{
    struct hostile_random r = hostile_cases_random(c, UINT32_MAX - round);
    struct tree *t = tree_copy(&c->kept, c->valid[0]);
    uint32_t begin = hostile_below(&r, c->place_count);
    for (uint32_t i = 0; i < c->place_count; i++)
        t = grow(c, t, &c->places[(begin + i) % c->place_count]);
    return t;
}

/* A field of the kind that is a pod: its rows have containers. */
static const struct place *find_pod(const struct hostile_cases *c)
{
    for (uint32_t i = 0; i < c->place_count; i++) {
        const struct stw_field *rows = hostile_rows_below(c->places[i].row);
        for (; rows && rows->name; rows++)
            if (stw_streq(rows->name, "containers"))
                return &c->places[i];
    }
    return NULL;
}

static void add_full(struct hostile_cases *c, struct tree *t)
{
    c->full[c->full_count] = t;
    c->full_nodes[c->full_count] = (uint32_t)tree_places(t, c->nodes, NODES_MAX);
    c->changes += c->full_nodes[c->full_count++] * CHANGES;
}

static struct tree *with_metadata(struct hostile_cases *c, const struct tree *valid)
{
    struct tree *t = tree_copy(&c->kept, valid);
    for (size_t i = 0; i < STW_COUNT(metadata_members); i++)
        tree_put(
            &c->kept, t, (const char *const[]){"metadata", metadata_members[i].name}, 2,
            tree_of_text(&c->kept, metadata_members[i].json, strlen(metadata_members[i].json)));
    return t;
}

struct hostile_cases *hostile_cases_create(const struct stw_kind *k, const struct stw_env *env,
                                           const struct stw_buf *sample, const struct stw_buf *pod,
                                           uint64_t seed)
{
    stw_autobuf struct stw_buf why = STW_BUF_INIT(TEXT_MAX);
    struct hostile_cases *c = calloc(1, sizeof(*c));
    assert(c);
    *c = (struct hostile_cases){.kind = k, .env = env, .seed = seed};
    c->nodes = calloc(NODES_MAX, sizeof(*c->nodes));
    assert(c->nodes);
    add_places(c);
    c->changes = c->fields;
    c->valid[c->valid_count++] = tree_of_text(&c->kept, stw_buf_str(sample), sample->len);
    if (!judge(c, c->valid[0], &why)) {
        (void)fprintf(stderr, "the sample of %s is not valid: %s\n", k->kind, stw_buf_str(&why));
        exit(1);
    }
    for (uint32_t i = 0; i < GROWN; i++)
        c->valid[c->valid_count++] = grow_all(c, i);
    add_full(c, c->valid[0]);
    add_full(c, with_metadata(c, c->valid[1]));
    const struct place *at = find_pod(c);
    if (at) {
        struct tree *t = tree_copy(&c->kept, c->valid[0]);
        put_text(&c->kept, t, at, pod);
        add_full(c, t);
    }
    return c;
}

void hostile_cases_destroy(struct hostile_cases *c)
{
    tree_arena_done(&c->kept);
    tree_arena_done(&c->scratch);
    free(c->places);
    free(c->nodes);
    free(c);
}

uint32_t hostile_cases_single(const struct hostile_cases *c)
{
    return STW_MIN(c->changes, SINGLE_MAX);
}

uint32_t hostile_cases_changes(const struct hostile_cases *c)
{
    return c->changes;
}

uint32_t hostile_valid_count(const struct hostile_cases *c)
{
    return c->valid_count;
}

const struct tree *hostile_valid_tree(const struct hostile_cases *c, uint32_t index)
{
    return c->valid[index];
}

void hostile_valid(struct hostile_cases *c, uint32_t index, struct stw_buf *out)
{
    tree_write(c->valid[index], out);
}

/* --- one object */

static void remove_kid(struct tree *t, uint32_t index)
{
    for (uint32_t i = index + 1; i < t->count; i++)
        t->kids[i - 1] = t->kids[i];
    t->count--;
}

/* An absent value: the member is left out. */
static void drop(struct tree *root, const struct place *p)
{
    struct tree *t = root;
    for (size_t i = 0; t && i + 1 < p->depth; i++)
        t = tree_child(t, p->steps[i]);
    struct tree *kid = t ? tree_child(t, p->steps[p->depth - 1]) : NULL;
    for (uint32_t i = 0; kid && i < t->count; i++)
        if (t->kids[i] == kid) {
            remove_kid(t, i);
            return;
        }
}

static void put_value(struct tree_arena *a, struct tree *root, const struct place *p,
                      uint32_t index)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(TEXT_MAX);
    if (index == hostile_value_count(p->row)) {
        drop(root, p);
        return;
    }
    hostile_value(p->row, index, &text);
    tree_put(a, root, p->steps, p->depth, tree_raw(a, stw_buf_str(&text), text.len));
}

static void change_node(struct tree_arena *a, struct tree_place at, enum change change)
{
    struct tree *t = at.parent, *kid = t->kids[at.index];
    uint32_t next = (at.index + 1) % t->count;
    switch (change) {
    case DROP:
        remove_kid(t, at.index);
        break;
    case REPEAT:
        tree_add(a, t, kid);
        break;
    case SWAP: { /* values only, so that keys stay in their order */
        struct tree one = *kid;
        tree_become(kid, t->kids[next]);
        tree_become(t->kids[next], &one);
        break;
    }
    case RENAME:
        if (kid->key) {
            kid->key = "\"a\\u0000\\\"b\"";
            kid->key_len = strlen(kid->key);
        }
        break;
    case WRONG_TYPE:
        tree_become(kid, kid->type == TREE_RAW ? &(struct tree){.type = TREE_LIST}
                                               : tree_raw(a, "1", 1));
        break;
    case EMPTY:
        tree_become(kid, kid->type == TREE_RAW ? tree_raw(a, "\"\"", 2)
                                               : &(struct tree){.type = kid->type});
        break;
    case NO_VALUE:
    case CHANGES:
        tree_become(kid, tree_raw(a, "null", 4));
        break;
    }
}

static void change_any(struct hostile_random *r, struct tree_arena *a, struct tree *root,
                       struct tree_place *nodes)
{
    uint32_t n = (uint32_t)tree_places(root, nodes, NODES_MAX);
    if (n == 0)
        return;
    struct tree_place at = nodes[hostile_below(r, n)];
    uint32_t change = hostile_below(r, 2 * CHANGES);
    if (change < CHANGES) {
        change_node(a, at, (enum change)change);
        return;
    }
    const char *text = hostile_texts[hostile_below(r, hostile_text_count)];
    tree_become(at.parent->kids[at.index], tree_raw(a, text, strlen(text)));
}

void hostile_change(struct hostile_random *r, struct tree_arena *a, struct tree *root)
{
    static struct tree_place nodes[NODES_MAX];
    change_any(r, a, root, nodes);
}

static struct place *place_of(const struct hostile_cases *c, uint32_t number)
{
    uint32_t low = 0, high = c->place_count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (c->places[middle].first <= number)
            low = middle;
        else
            high = middle;
    }
    return &c->places[low];
}

/* Any of the field values; large ones are left to their own objects. */
static void change_field(struct hostile_cases *c, struct hostile_random *r, struct tree *root)
{
    const struct place *p = &c->places[hostile_below(r, c->place_count)];
    uint32_t count = hostile_value_count(p->row);
    uint32_t most = p->row->has_range ? count - 5 : count;
    put_value(&c->scratch, root, p, hostile_below(r, most));
}

static struct tree *base(struct hostile_cases *c, struct hostile_random *r)
{
    uint32_t index = hostile_below(r, 4) ? 0 : hostile_below(r, c->valid_count);
    return tree_copy(&c->scratch, c->valid[index]);
}

static struct tree *pair(struct hostile_cases *c, struct hostile_random *r)
{
    struct tree *t = hostile_below(r, 8) == 0
                         ? tree_copy(&c->scratch, c->full[hostile_below(r, c->full_count)])
                         : base(c, r);
    for (int i = 0; i < 2; i++) {
        if (hostile_below(r, 4) == 0)
            change_any(r, &c->scratch, t, c->nodes);
        else
            change_field(c, r, t);
    }
    return t;
}

static struct tree *changed_member(struct hostile_cases *c, uint32_t number)
{
    uint32_t full = 0;
    while (number >= c->full_nodes[full] * CHANGES)
        number -= c->full_nodes[full++] * CHANGES;
    struct tree *t = tree_copy(&c->scratch, c->full[full]);
    (void)tree_places(t, c->nodes, NODES_MAX);
    change_node(&c->scratch, c->nodes[number / CHANGES], (enum change)(number % CHANGES));
    return t;
}

/* Whether the value of the field is in the text, as a reader sees it. */
static void note_arrival(struct place *p, uint32_t index, const struct stw_buf *text)
{
    stw_autojson struct stw_json_doc doc = {0};
    stw_autobuf struct stw_buf value = STW_BUF_INIT(TEXT_MAX);
    size_t len;
    if (p->arrived || index == hostile_value_count(p->row) ||
        stw_json_scan(&doc, stw_buf_str(text), text->len, NULL) != 0)
        return;
    struct stw_json v = stw_json_root(&doc);
    for (size_t i = 0; i < p->depth; i++)
        v = stw_json_type(v) == STW_JSON_ARRAY ? stw_json_at(v, 0) : stw_json_get(v, p->steps[i]);
    const char *raw = stw_json_raw(v, &len);
    hostile_value(p->row, index, &value);
    p->arrived = stw_json_type(v) != STW_JSON_ABSENT && len == value.len &&
                 memcmp(raw, stw_buf_str(&value), len) == 0;
}

/* One of the changes that belong to this object, at random. */
static uint32_t change_of(const struct hostile_cases *c, struct hostile_random *r, uint32_t number)
{
    uint64_t single = hostile_cases_single(c);
    uint64_t from = number * (uint64_t)c->changes / single;
    uint64_t to = (number + 1) * (uint64_t)c->changes / single;
    return (uint32_t)from + hostile_below(r, (uint32_t)(to - from));
}

void hostile_case(struct hostile_cases *c, uint32_t number, struct stw_buf *out)
{
    struct hostile_random r = hostile_cases_random(c, number);
    uint32_t single = hostile_cases_single(c);
    tree_arena_reset(&c->scratch);
    stw_buf_clear(out);
    if (number >= single) {
        tree_write(pair(c, &r), out);
        return;
    }
    uint32_t change = change_of(c, &r, number);
    if (change >= c->fields) {
        tree_write(changed_member(c, change - c->fields), out);
        return;
    }
    struct place *p = place_of(c, change);
    struct tree *t = base(c, &r);
    put_value(&c->scratch, t, p, change - p->first);
    tree_write(t, out);
    note_arrival(p, change - p->first, out);
}

/* --- completeness, by the CRD: it is made from the same tables by other code */

struct schema_walk {
    const struct hostile_cases *c;
    unsigned missed;
};

static void check_path(struct schema_walk *w, const char *path)
{
    char own[PATH_MAX_BYTES];
    for (uint32_t i = 0; i < w->c->place_count; i++) {
        path_of(&w->c->places[i], own);
        if (stw_streq(own, path) && w->c->places[i].arrived)
            return;
    }
    (void)fprintf(stderr, "no object had a hostile value of %s of %s\n", path, w->c->kind->kind);
    w->missed++;
}

static void walk_schema(struct schema_walk *w, struct stw_json schema, const char *path)
{
    struct stw_json key, value, properties = stw_json_get(schema, "properties");
    struct stw_json items = stw_json_get(schema, "items");
    struct stw_json entries = stw_json_get(schema, "additionalProperties");
    char below[PATH_MAX_BYTES], name[128];
    stw_json_foreach (properties, key, value) {
        stw_json_cut(key, name, sizeof(name));
        stw_format(below, sizeof(below), "%s.%s", path, name);
        check_path(w, below);
        walk_schema(w, value, below);
    }
    if (stw_json_type(items) == STW_JSON_OBJECT) {
        stw_format(below, sizeof(below), "%s.0", path);
        check_path(w, below);
        walk_schema(w, items, below);
    }
    if (stw_json_type(entries) == STW_JSON_OBJECT) {
        stw_format(below, sizeof(below), "%s.a", path);
        check_path(w, below);
        walk_schema(w, entries, below);
    }
}

static int walk_crd(void *ctx, unsigned index, size_t line, const struct stw_buf *json)
{
    stw_autojson struct stw_json_doc doc = {0};
    (void)index, (void)line;
    if (stw_json_scan(&doc, stw_buf_str(json), json->len, NULL) != 0)
        return 1;
    struct stw_json version = stw_json_at(stw_json_path(stw_json_root(&doc), "spec.versions"), 0);
    struct stw_json top = stw_json_path(version, "schema.openAPIV3Schema.properties");
    assert(stw_json_size(stw_json_path(top, "spec.properties")) > 0);
    walk_schema(ctx, stw_json_get(top, "spec"), "spec");
    walk_schema(ctx, stw_json_get(top, "status"), "status");
    return 0;
}

unsigned hostile_cases_missed(struct hostile_cases *c)
{
    stw_autobuf struct stw_buf crd = STW_BUF_INIT(TEXT_MAX);
    struct schema_walk w = {.c = c};
    struct stw_error err = {0};
    char path[PATH_MAX_BYTES];
    stw_kind_crd(c->env->op, c->kind, &crd);
    if (stw_yaml_each("crd", stw_buf_str(&crd), crd.len, walk_crd, &w, &err) != 0) {
        (void)fprintf(stderr, "cannot read the CRD: %s\n", err.text);
        return 1;
    }
    for (uint32_t i = 0; i < c->place_count; i++) {
        path_of(&c->places[i], path);
        if (!c->places[i].arrived)
            check_path(&w, path);
    }
    return w.missed;
}
