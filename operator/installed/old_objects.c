/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/installed/old_objects.h"

#include "base/table.h"
#include "base/yaml/yaml.h"
#include "operator/installed/files.h"

#define OBJECTS_MAX 10000
#define TOTAL_MAX ((size_t)64 << 20)
#define KEY_MAX 1024

struct old_object {
    char *key, *text;
    struct stw_json_doc doc;
};

struct stw_old_objects {
    struct stw_table table;
    size_t bytes;
    struct stw_error err; /* the first */
    const char *file;
    const char *ns; /* of objects that name none */
};

static const char *key_of(const void *entry)
{
    return ((const struct old_object *)entry)->key;
}

static int format_key(const struct stw_old_objects *all, const struct stw_manifest *m, char *out,
                      size_t size)
{
    char group[256], version[256], ns[254], name[254];
    struct stw_json meta = stw_json_get(m->object, "metadata");
    stw_manifest_split(m->api_version, group, version, sizeof(group));
    if (stw_json_strcpy(stw_json_get(meta, "name"), name, sizeof(name)) != 0 || !*name)
        return -1;
    if (stw_json_strcpy(stw_json_get(meta, "namespace"), ns, sizeof(ns)) != 0 || !*ns)
        stw_format(ns, sizeof(ns), "%s", all->ns);
    return stw_format_whole(out, size, "%s.%s %s/%s", m->kind, group, ns, name);
}

static void free_object(void *entry)
{
    struct old_object *o = entry;
    stw_json_done(&o->doc);
    free(o->key);
    free(o->text);
    free(o);
}

static struct old_object *copy_object(const char *key, struct stw_json object)
{
    size_t len;
    const char *raw = stw_json_raw(object, &len);
    struct old_object *o = calloc(1, sizeof(*o));
    if (!o)
        return NULL;
    o->key = strdup(key);
    o->text = strndup(raw, len);
    if (!o->key || !o->text || stw_json_scan(&o->doc, o->text, len, NULL) != 0) {
        free_object(o);
        return NULL;
    }
    return o;
}

static int add_object(struct stw_old_objects *all, const struct stw_manifest *m,
                      struct stw_error *err)
{
    char key[KEY_MAX];
    size_t len;
    if (stw_json_type(m->object) != STW_JSON_OBJECT || format_key(all, m, key, sizeof(key)) != 0)
        return 0; /* without a name there is nothing to compare with */
    (void)stw_json_raw(m->object, &len);
    all->bytes += len;
    if (all->bytes > TOTAL_MAX || stw_table_size(&all->table) >= OBJECTS_MAX)
        return stw_fail(err, STW_ERR_TOO_LARGE, "more than %d objects or 64 MiB", OBJECTS_MAX);
    if (stw_table_get(&all->table, key))
        return stw_fail(err, STW_ERR_INVALID, "%s: %s is there twice", all->file, key);
    struct old_object *o = copy_object(key, m->object);
    if (!o || stw_table_put(&all->table, o, NULL) != 0) {
        if (o)
            free_object(o);
        return stw_fail_memory(err);
    }
    return 0;
}

static void keep_object(void *ctx, const struct stw_manifest *m)
{
    struct stw_old_objects *all = ctx;
    if (all->err.code == STW_OK)
        (void)add_object(all, m, &all->err);
}

static int keep_document(void *ctx, unsigned index, size_t line, const struct stw_buf *json)
{
    struct stw_old_objects *all = ctx;
    stw_autojson struct stw_json_doc doc = {0};
    (void)index, (void)line;
    if (stw_json_scan(&doc, json->data, json->len, &all->err) != 0 ||
        stw_manifest_each(stw_json_root(&doc), keep_object, all, &all->err) != 0)
        return stw_error_wrap(&all->err, "%s", all->file);
    return all->err.code == STW_OK ? 0 : -1;
}

static void read_text(void *ctx, const char *name, const char *text, size_t len)
{
    struct stw_old_objects *all = ctx;
    struct stw_error err = {0};
    all->file = name;
    if (all->err.code == STW_OK && stw_yaml_each(name, text, len, keep_document, all, &err) < 0 &&
        all->err.code == STW_OK)
        all->err = err;
}

static void note_unreadable(void *ctx, const char *name, const char *why)
{
    struct stw_old_objects *all = ctx;
    if (all->err.code == STW_OK)
        (void)stw_fail(&all->err, STW_ERR_INVALID, "%s%s%s", name ? name : "", name ? ": " : "",
                       why);
}

struct stw_old_objects *stw_old_objects_read(const char *path, const char *ns,
                                             struct stw_error *err)
{
    struct stw_old_objects *all = calloc(1, sizeof(*all));
    if (!all) {
        (void)stw_fail_memory(err);
        return NULL;
    }
    all->table = STW_TABLE_INIT(key_of);
    all->ns = ns;
    stw_files_each(path, true, read_text, note_unreadable, all);
    if (all->err.code == STW_OK)
        return all;
    *err = all->err;
    stw_old_objects_destroy(all);
    return NULL;
}

void stw_old_objects_destroy(struct stw_old_objects *o)
{
    if (!o)
        return;
    stw_table_release(&o->table, free_object);
    free(o);
}

struct stw_json stw_old_objects_find(const struct stw_old_objects *o, const struct stw_manifest *m)
{
    char key[KEY_MAX];
    if (!o || format_key(o, m, key, sizeof(key)) != 0)
        return STW_JSON_NONE;
    const struct old_object *found = stw_table_get(&o->table, key);
    return found ? stw_json_root(&found->doc) : STW_JSON_NONE;
}
