/* SPDX-License-Identifier: Apache-2.0
 *
 * Judges the objects of tests/cases/KIND/TOPIC.yaml; docs/testing.md explains these files.  Each file is
 * a test.  With arguments, only these files are read:
 *     build/tests/unit/kinds/test_kinds_cases tests/cases/app/strategy.yaml */
#include "base/base64.h"
#include "base/table.h"
#include "base/tzfile.h"
#include "base/yaml/yaml.h"
#include "controller/manager/manager_priv.h"
#include "kinds/common/product.h"
#include "kinds/kinds.h"
#include "schema/zones.h"
#include "sql/target/target.h"
#include "support/judge.h"

#include <glob.h>
#include <strings.h>

#define TEXT_MAX (1 << 20)

struct file {
    const char *path;
    const struct stw_kind *kind;
    struct stw_yaml_marks *marks;
    struct stw_json root;
    struct stw_targets *targets;
    struct stw_table asked; /* each question, so that none is asked twice */
    unsigned failures;
};

/* What the rules may look up. */
struct cluster {
    const char *ns; /* of the object */
    struct stw_json facts;
};

static struct stw_zones *zones;

/* --- what is wrong with a file */

static size_t line_of(const struct file *f, const char *at)
{
    size_t line = 0, column;
    (void)stw_yaml_marks_find(f->marks, at, &line, &column);
    return line;
}

/* Ends the test.  `at`: a path such as "cases[3].old". */
#define fail_at(f, at, ...)                                                                        \
    do {                                                                                           \
        char why[512];                                                                             \
        stw_format(why, sizeof(why), __VA_ARGS__);                                                 \
        fail_msg("%s:%zu: %s: %s", (f)->path, line_of(f, at), at, why);                            \
    } while (0)

static void check_keys(const struct file *f, const char *at, struct stw_json object,
                       const char *const *known)
{
    struct stw_json key, value;
    if (stw_json_type(object) != STW_JSON_OBJECT)
        fail_at(f, at, "must be an object");
    stw_json_foreach (object, key, value) {
        const char *const *k = known;
        while (*k && !stw_json_is(key, *k))
            k++;
        if (!*k) {
            char name[64];
            stw_json_cut(key, name, sizeof(name));
            fail_at(f, at, "unknown key %s", name);
        }
    }
}

static void check_list(const struct file *f, const char *at, struct stw_json list)
{
    if (stw_json_type(list) != STW_JSON_ARRAY || stw_json_size(list) == 0)
        fail_at(f, at, "must be a list with entries");
}

static void check_cluster(const struct file *f, const char *at, struct stw_json cluster)
{
    static const char *const known[] = {"objects", "indexes",   "namespaces",
                                        "secrets", "nodePorts", NULL};
    static const struct {
        const char *key;
        enum stw_json_type type;
    } entries[] = {{"objects", STW_JSON_ARRAY},
                   {"indexes", STW_JSON_OBJECT},
                   {"namespaces", STW_JSON_STRING},
                   {"secrets", STW_JSON_OBJECT},
                   {"nodePorts", STW_JSON_INT}};
    struct stw_json key, value;
    check_keys(f, at, cluster, known);
    for (size_t i = 0; i < STW_COUNT(entries); i++)
        stw_json_foreach (stw_json_get(cluster, entries[i].key), key, value)
            if (stw_json_type(value) != entries[i].type && !stw_json_is(value, "unreadable"))
                fail_at(f, at, "%s has an entry of another type", entries[i].key);
}

/* --- objects */

static void add_raw(struct stw_json value, struct stw_buf *out)
{
    size_t len;
    const char *raw = stw_json_raw(value, &len);
    stw_buf_add(out, raw, len);
}

/* The member with the same name as `key`. */
static struct stw_json same_member(struct stw_json object, struct stw_json key)
{
    struct stw_json name, value;
    stw_json_foreach (object, name, value)
        if (stw_json_compare(name, key) == 0)
            return value;
    return STW_JSON_NONE;
}

static void begin_member(struct stw_json key, struct stw_buf *out)
{
    if (stw_buf_str(out)[out->len - 1] != '{')
        stw_buf_addc(out, ',');
    add_raw(key, out);
    stw_buf_addc(out, ':');
}

/* A JSON merge patch (RFC 7386), except that a null that removes nothing is an error. */
static void merge(const struct file *f, const char *at, struct stw_json base, struct stw_json patch,
                  struct stw_buf *out)
{
    struct stw_json key, value;
    if (stw_json_type(patch) != STW_JSON_OBJECT) {
        add_raw(patch, out);
        return;
    }
    stw_buf_addc(out, '{');
    stw_json_foreach (base, key, value) {
        struct stw_json other = same_member(patch, key);
        enum stw_json_type type = stw_json_type(other);
        if (type != STW_JSON_NULL)
            begin_member(key, out);
        if (type == STW_JSON_ABSENT)
            add_raw(value, out);
        else if (type != STW_JSON_NULL)
            merge(f, at, value, other, out);
    }
    stw_json_foreach (patch, key, value) {
        if (stw_json_type(same_member(base, key)) != STW_JSON_ABSENT)
            continue;
        if (stw_json_type(value) == STW_JSON_NULL)
            fail_at(f, at, "null removes a member that the base does not have");
        begin_member(key, out);
        merge(f, at, STW_JSON_NONE, value, out);
    }
    stw_buf_addc(out, '}');
}

static const char *const members[] = {"metadata", "spec", "status"};

static bool has_key(struct stw_json object, const char *key)
{
    return stw_json_type(stw_json_get(object, key)) != STW_JSON_ABSENT;
}

/* An object is given by its members, or as `json`, or whole. */
static void check_ways(const struct file *f, const char *at, struct stw_json from)
{
    unsigned ways = has_key(from, "object") + has_key(from, "json"), given = 0;
    for (size_t i = 0; i < STW_COUNT(members); i++)
        given += has_key(from, members[i]);
    if (ways > 1 || (ways == 1 && given > 0))
        fail_at(f, at, "has the object twice");
}

/* `from`: a case, or what it has under `old` or `delete`. */
static void build_object(const struct file *f, const char *at, struct stw_json from,
                         struct stw_buf *out)
{
    struct stw_json base = stw_json_get(f->root, "base"), json = stw_json_get(from, "json");
    stw_autojson struct stw_json_doc doc = {0};
    stw_autobuf struct stw_buf patch = STW_BUF_INIT(TEXT_MAX);
    check_ways(f, at, from);
    if (has_key(from, "object")) {
        add_raw(stw_json_get(from, "object"), out);
        return;
    }
    stw_json_str(json, &patch);
    for (size_t i = 0; i < STW_COUNT(members); i++) {
        if (!has_key(from, members[i]))
            continue;
        stw_buf_addf(&patch, "%s\"%s\":", patch.len ? "," : "{", members[i]);
        add_raw(stw_json_get(from, members[i]), &patch);
    }
    if (!stw_json_there(json))
        stw_buf_adds(&patch, patch.len ? "}" : "{}");
    scan(&doc, stw_buf_str(&patch));
    merge(f, at, base, stw_json_root(&doc), out);
    if (stw_json_size(stw_json_root(&doc)) > 0) {
        stw_autojson struct stw_json_doc merged = {0};
        scan(&merged, stw_buf_str(out));
        if (stw_json_equal(stw_json_root(&merged), base))
            fail_at(f, at, "the members change nothing of the base");
    }
}

/* --- the cluster */

static int has(void *ctx, const char *plural, const char *key)
{
    const struct cluster *c = ctx;
    struct stw_json list = stw_json_get(stw_json_get(c->facts, "objects"), plural), none, one;
    if (stw_json_type(list) != STW_JSON_ARRAY)
        return -1;
    stw_json_foreach (list, none, one)
        if (stw_json_is(one, key))
            return 1;
    return 0;
}

static bool find(void *ctx, const char *index, const char *key, const char *self, char *ret_holder)
{
    const struct cluster *c = ctx;
    struct stw_json entries = stw_json_get(stw_json_get(c->facts, "indexes"), index);
    if (stw_streq(index, "namespaces.enforce")) {
        char level[64], held[512];
        struct stw_json set = stw_json_get(stw_json_get(c->facts, "namespaces"), c->ns);
        if (stw_json_strcpy(set, level, sizeof(level)) != 0)
            return false;
        stw_format(held, sizeof(held), "%s/%s", level, c->ns);
        return stw_streq(held, key);
    }
    return stw_json_strcpy(stw_json_get(entries, key), ret_holder, 512) == 0 &&
           !stw_streq(ret_holder, self);
}

/* A Secret is the text of its keys, "unreadable", or not there. */
static int look_at_secret(void *ctx, const char *ns, const char *name, const char *key,
                          struct stw_secret_facts *ret)
{
    const struct cluster *c = ctx;
    struct stw_json secret = stw_json_get(stw_json_get(c->facts, "secrets"), name);
    stw_autobuf struct stw_buf value = STW_BUF_INIT(TEXT_MAX), text = STW_BUF_INIT(TEXT_MAX);
    stw_autojson struct stw_json_doc doc = {0};
    assert_string_equal(ns, c->ns);
    *ret = (struct stw_secret_facts){0};
    if (stw_json_is(secret, "unreadable"))
        return -1;
    if (stw_json_type(secret) != STW_JSON_OBJECT)
        return 0;
    stw_buf_adds(&text, "{\"data\":{");
    if (stw_json_there(stw_json_get(secret, key))) {
        stw_json_str(stw_json_get(secret, key), &value);
        stw_buf_addf(&text, "\"%s\":\"", key);
        stw_base64_encode(stw_buf_str(&value), value.len, &text);
        stw_buf_addc(&text, '"');
    }
    stw_buf_adds(&text, "}}");
    scan(&doc, stw_buf_str(&text));
    stw_secret_describe(stw_json_root(&doc), key, ret);
    return 0;
}

/* --- cases */

struct expectation {
    bool defaults; /* what defaulting adds is compared, not the findings */
    struct stw_buf want;
};

static void add_texts(const struct file *f, const char *at, struct stw_json texts,
                      const char *before, struct stw_buf *out)
{
    struct stw_json none, text;
    check_list(f, at, texts);
    stw_json_foreach (texts, none, text) {
        if (stw_json_size(text) == 0 || stw_json_type(text) != STW_JSON_STRING)
            fail_at(f, at, "must hold texts");
        stw_buf_adds(out, before);
        stw_json_str(text, out);
        stw_buf_addc(out, '\n');
    }
}

static void expect(const struct file *f, const char *at, struct stw_json one, struct expectation *e)
{
    struct stw_json defaults = stw_json_get(one, "defaults"), key, value;
    e->want = STW_BUF_INIT(TEXT_MAX);
    e->defaults = has_key(one, "defaults");
    if (has_key(one, "errors"))
        add_texts(f, at, stw_json_get(one, "errors"), "", &e->want);
    if (has_key(one, "warnings"))
        add_texts(f, at, stw_json_get(one, "warnings"), "W: ", &e->want);
    if (e->defaults && e->want.len > 0)
        fail_at(f, at, "defaults are compared without errors and warnings");
    if (!e->defaults || stw_json_is(defaults, "none"))
        return;
    if (stw_json_type(defaults) != STW_JSON_OBJECT || stw_json_size(defaults) == 0)
        fail_at(f, at, "defaults must be a map with entries, or none");
    stw_json_foreach (defaults, key, value) {
        stw_json_str(key, &e->want);
        stw_buf_addc(&e->want, '=');
        add_raw(value, &e->want);
        stw_buf_addc(&e->want, '\n');
    }
}

/* The findings, or the defaults that are added. */
static char *answer_of(const struct stw_admission *a, bool defaults_wanted)
{
    struct stw_buf out = STW_BUF_INIT(TEXT_MAX);
    struct stw_defaults d = {.add = list_default, .ctx = &out};
    if (!defaults_wanted)
        return answer(a);
    stw_kind_default(a, &d);
    return stw_buf_take(&out);
}

static const char *entry_text(const void *entry)
{
    return entry;
}

static void note_asked(struct file *f, const char *at, const char *object, const char *old,
                       struct stw_json one)
{
    static const char *const others[] = {"namespace", "cluster"};
    stw_autobuf struct stw_buf text = STW_BUF_INIT(TEXT_MAX);
    void *same = NULL;
    stw_buf_addf(&text, "%s %s %d %d", object, old ? old : "", has_key(one, "delete"),
                 has_key(one, "defaults"));
    for (size_t i = 0; i < STW_COUNT(others); i++) {
        stw_buf_addf(&text, " %s:", others[i]);
        if (has_key(one, others[i]))
            add_raw(stw_json_get(one, others[i]), &text);
    }
    assert_int_equal(stw_table_put(&f->asked, stw_buf_take(&text), &same), 0);
    if (same) {
        free(same);
        fail_at(f, at, "the same case comes before");
    }
}

static void set_node_ports(struct stw_json facts, struct stw_product *p)
{
    int64_t min = 0, max = 0;
    (void)stw_json_int(stw_json_at(stw_json_get(facts, "nodePorts"), 0), &min);
    (void)stw_json_int(stw_json_at(stw_json_get(facts, "nodePorts"), 1), &max);
    p->node_port_min = (int32_t)min;
    p->node_port_max = (int32_t)max;
}

static void judge(struct file *f, const char *at, const struct stw_admission *a,
                  const struct expectation *e, struct stw_json facts)
{
    struct cluster c = {.ns = a->ns, .facts = facts};
    struct stw_lookup lookup = {.ctx = &c, .find = find};
    struct stw_product product = {
        .zones = zones, .targets = f->targets ? stw_targets_now : NULL, .targets_ctx = f->targets};
    struct stw_env env = {.op = &stw_operator_steward, .product = &product};
    struct stw_admission asked = *a;
    lookup.has = stw_json_there(stw_json_get(facts, "objects")) ? has : NULL;
    lookup.secret = stw_json_there(stw_json_get(facts, "secrets")) ? look_at_secret : NULL;
    if (stw_json_there(facts))
        env.lookup = &lookup;
    set_node_ports(facts, &product);
    asked.env = &env;
    stw_autofree char *got = answer_of(&asked, e->defaults);
    if (stw_streq(got, stw_buf_str(&e->want)))
        return;
    f->failures++;
    (void)fprintf(stderr, "%s:%zu: %s\ngot:\n%swant:\n%s", f->path, line_of(f, at), at,
                  *got ? got : "nothing\n",
                  e->want.len ? stw_buf_str(&e->want) : "nothing\n"); /* of any length */
}

/* Once, or in each of the clusters that the file lists. */
static void judge_in_clusters(struct file *f, const char *at, const struct stw_admission *a,
                              const struct expectation *e, struct stw_json one)
{
    struct stw_json own = stw_json_get(one, "cluster"), none, cluster;
    const struct expectation accepted = {.defaults = false, .want = STW_BUF_INIT(1)};
    judge(f, at, a, e, has_key(one, "cluster") ? own : stw_json_get(f->root, "cluster"));
    if (has_key(one, "cluster"))
        return;
    stw_json_foreach (stw_json_get(f->root, "same_in"), none, cluster)
        judge(f, at, a, e, cluster);
    stw_json_foreach (stw_json_get(f->root, "accepted_in"), none, cluster)
        judge(f, at, a, &accepted, cluster);
}

static void check_case(const struct file *f, const char *at, struct stw_json one)
{
    static const char *const known[] = {"spec",   "metadata", "status",   "object",    "json",
                                        "old",    "errors",   "warnings", "namespace", "cluster",
                                        "delete", "defaults", NULL};
    static const char *const of_object[] = {"spec", "metadata", "status", "object", "json", NULL};
    check_keys(f, at, one, known);
    if (has_key(one, "old"))
        check_keys(f, at, stw_json_get(one, "old"), of_object);
    if (has_key(one, "delete")) {
        check_keys(f, at, stw_json_get(one, "delete"), of_object);
        for (const char *const *k = of_object; *k; k++)
            if (has_key(one, *k) || has_key(one, "old") || has_key(one, "defaults"))
                fail_at(f, at, "only what is deleted is judged");
    }
    if (stw_json_there(stw_json_get(one, "cluster")))
        check_cluster(f, at, stw_json_get(one, "cluster"));
}

static void take_case(struct file *f, const char *at, struct stw_json one)
{
    stw_autobuf struct stw_buf object = STW_BUF_INIT(TEXT_MAX), old = STW_BUF_INIT(TEXT_MAX);
    bool update = has_key(one, "old"), deleted = has_key(one, "delete");
    char ns[64] = "shop", name[256] = "web";
    struct expectation e;
    struct question q;
    check_case(f, at, one);
    build_object(f, at, deleted ? stw_json_get(one, "delete") : one, &object);
    if (update)
        build_object(f, at, stw_json_get(one, "old"), &old);
    note_asked(f, at, stw_buf_str(&object), update ? stw_buf_str(&old) : NULL, one);
    expect(f, at, one, &e);
    ask(&q, f->kind, stw_buf_str(&object), update ? stw_buf_str(&old) : NULL, NULL);
    (void)stw_json_strcpy(stw_json_get(one, "namespace"), ns, sizeof(ns));
    (void)stw_json_strcpy(stw_json_path(q.a.object, "metadata.name"), name, sizeof(name));
    q.a.ns = ns;
    q.a.name = name;
    if (deleted) {
        q.a.operation = STW_DELETE;
        q.a.old_object = q.a.object;
        q.a.object = STW_JSON_NONE;
    } else if (!e.defaults) {
        note_question(f->kind, stw_buf_str(&object), update ? stw_buf_str(&old) : NULL);
    }
    judge_in_clusters(f, at, &q.a, &e, one);
    stw_buf_done(&e.want);
    ask_done(&q);
}

/* --- files */

static void read_text(const char *path, char **ret, size_t *ret_len)
{
    struct stw_error err = {0};
    if (stw_read_file(path, TEXT_MAX, ret, ret_len, &err) != 0)
        fail_msg("%s", err.text);
}

static int parse_targets(void *ctx, unsigned index, size_t line, const struct stw_buf *json)
{
    struct stw_targets **ret = ctx;
    stw_autojson struct stw_json_doc doc = {0};
    stw_autofindings struct stw_findings f = {0};
    (void)index, (void)line;
    scan(&doc, stw_buf_str(json));
    return stw_targets_parse(stw_json_get(stw_json_root(&doc), "targets"), ret, &f);
}

/* From a file beside it, as in steward's configuration. */
static void read_targets(struct file *f)
{
    struct stw_json name = stw_json_get(f->root, "targets");
    struct stw_error err = {0};
    char path[512], beside[128];
    stw_autofree char *text = NULL;
    size_t len;
    if (!has_key(f->root, "targets"))
        return;
    if (stw_json_strcpy(name, beside, sizeof(beside)) != 0)
        fail_at(f, "targets", "must be the name of a file");
    stw_format(path, sizeof(path), "%.*s%s", (int)(strrchr(f->path, '/') + 1 - f->path), f->path,
               beside);
    read_text(path, &text, &len);
    if (stw_yaml_each(path, text, len, parse_targets, &f->targets, &err) != 0)
        fail_msg("%s: %s", path, err.text);
}

static void check_file(const struct file *f)
{
    static const char *const known[] = {"base",    "cluster",     "targets", "cases",
                                        "same_in", "accepted_in", NULL};
    static const char *const lists[] = {"same_in", "accepted_in"};
    static const char *const of_base[] = {"metadata", "spec", "status", NULL};
    struct stw_json cluster = stw_json_get(f->root, "cluster"), none, one;
    check_keys(f, "", f->root, known);
    if (has_key(f->root, "base"))
        check_keys(f, "base", stw_json_get(f->root, "base"), of_base);
    check_list(f, "cases", stw_json_get(f->root, "cases"));
    if (stw_json_there(cluster))
        check_cluster(f, "cluster", cluster);
    for (size_t i = 0; i < STW_COUNT(lists); i++) {
        if (!has_key(f->root, lists[i]))
            continue;
        check_list(f, lists[i], stw_json_get(f->root, lists[i]));
        stw_json_foreach (stw_json_get(f->root, lists[i]), none, one)
            if (stw_json_there(one))
                check_cluster(f, lists[i], one);
    }
}

static int judge_document(void *ctx, unsigned index, size_t line, const struct stw_buf *json)
{
    struct file *f = ctx;
    stw_autojson struct stw_json_doc doc = {0};
    struct stw_json none, one;
    char at[32];
    unsigned i = 0;
    if (index > 0)
        fail_msg("%s:%zu: must be one document", f->path, line);
    scan(&doc, stw_buf_str(json));
    f->root = stw_json_root(&doc);
    check_file(f);
    read_targets(f);
    stw_json_foreach (stw_json_get(f->root, "cases"), none, one) {
        stw_format(at, sizeof(at), "cases[%u]", i++);
        take_case(f, at, one);
    }
    return 0;
}

/* "tests/cases/app/strategy.yaml": App. */
static const struct stw_kind *kind_of(const char *path)
{
    const char *name = strrchr(path, '/'), *folder = name;
    while (folder && folder > path && folder[-1] != '/')
        folder--;
    for (const struct stw_kind *const *k = stw_kinds; folder && *k; k++)
        if (strlen((*k)->kind) == (size_t)(name - folder) &&
            strncasecmp((*k)->kind, folder, (size_t)(name - folder)) == 0)
            return *k;
    fail_msg("%s: is not in a folder with the name of a kind", path);
    return NULL;
}

static void judge_file(void **state)
{
    struct file f = {.path = *state, .asked = STW_TABLE_INIT(entry_text)};
    stw_autofree char *text = NULL;
    struct stw_error err = {0};
    size_t len;
    f.kind = kind_of(f.path);
    f.marks = stw_yaml_marks_create();
    assert_non_null(f.marks);
    read_text(f.path, &text, &len);
    if (stw_yaml_each_marked(f.path, text, len, judge_document, &f, f.marks, &err) != 0)
        fail_msg("%s", err.text);
    if (!f.kind || stw_table_size(&f.asked) == 0)
        fail_msg("%s: has no cases", f.path);
    if (f.failures > 0)
        fail_msg("%u answers of %s are not those expected", f.failures, f.path);
    stw_table_release(&f.asked, free);
    stw_yaml_marks_destroy(f.marks);
    stw_targets_unref(f.targets);
}

static int make_zones(void **state)
{
    (void)state;
    zones = stw_zones_create(stw_tz_read);
    return zones ? 0 : -1;
}

static int end_zones(void **state)
{
    (void)state;
    stw_zones_destroy(zones);
    return 0;
}

/* "app/strategy" */
static const char *name_of(const char *path)
{
    const char *at = path + strlen(path);
    for (int slashes = 0; at > path; at--)
        if (at[-1] == '/' && ++slashes == 2)
            break;
    return strndup(at, strlen(at) - strlen(".yaml"));
}

int main(int argc, char **argv)
{
    struct CMUnitTest tests[512];
    glob_t found = {0};
    size_t count = (size_t)argc - 1;
    char **paths = argv + 1;
    if (count == 0) {
        if (glob(STW_SOURCE_ROOT "/tests/cases/*/*.yaml", 0, NULL, &found) != 0)
            return 1;
        count = found.gl_pathc;
        paths = found.gl_pathv;
    }
    if (count > STW_COUNT(tests))
        return 1;
    for (size_t i = 0; i < count; i++)
        tests[i] = (struct CMUnitTest){
            .name = name_of(paths[i]), .test_func = judge_file, .initial_state = paths[i]};
    int failed = _cmocka_run_group_tests("cases", tests, count, make_zones, end_zones);
    for (size_t i = 0; i < count; i++)
        free((void *)(uintptr_t)tests[i].name);
    globfree(&found);
    return failed;
}
