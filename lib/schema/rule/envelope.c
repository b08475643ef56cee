/* SPDX-License-Identifier: Apache-2.0
 *
 * What the API server itself refuses in the parts that every object has: metadata, and unknown
 * members of metadata and status.  For checks without an API server. */
#include "base/clock.h"
#include "base/util.h"
#include "schema/core.h"
#include "schema/names.h"
#include "schema/rule/kind_priv.h"

static const char *check_namespace(const char *value)
{
    return stw_is_dns1123_label(value) ? NULL
                                       : "must be at most 63 of a-z, 0-9 and '-', with a letter or "
                                         "digit at both ends";
}

static const char *check_finalizer(const char *value)
{
    return stw_is_qualified_name(value) ? NULL : "must be a name such as example.com/cleanup";
}

/* As time.Parse of Go for RFC 3339: capital letters, no leap second. */
static const char *check_time(const char *value)
{
    int64_t unused;
    bool valid = stw_time_parse(value, &unused) == 0 && !strpbrk(value, "tz") &&
                 value[strlen("2006-01-02T15:04:")] != '6';
    return valid ? NULL : "must be a time such as 2006-01-02T15:04:05Z";
}

/* What the API server appends to it begins with a letter or a digit. */
static const char *check_generate_name(const char *value)
{
    char name[254];
    size_t len = strlen(value);
    if (len == 0)
        return NULL;
    if (stw_format_whole(name, sizeof(name), "%s", value) != 0)
        return "must be at most 253 characters";
    if (len > 1 && name[len - 1] == '-')
        name[len - 1] = 'a';
    return stw_check_dns1123_subdomain(name);
}

static const char *check_api_version(const char *value)
{
    const char *slash = strchr(value, '/');
    const char *version = slash ? slash + 1 : value;
    return *version && !strchr(version, '/') ? NULL : "must be GROUP/VERSION or VERSION";
}

static const struct stw_field text = {.name = "", .type = STW_T_STRING};
static const struct stw_field finalizer = {
    .name = "", .type = STW_T_STRING, .check = check_finalizer};

static const struct stw_field owner_rows[] = {
    {.name = "apiVersion", .type = STW_T_STRING, .required = true, .check = check_api_version},
    {.name = "kind", .type = STW_T_STRING, .required = true},
    {.name = "name", .type = STW_T_STRING, .required = true},
    {.name = "uid", .type = STW_T_STRING, .required = true},
    {.name = "controller", .type = STW_T_BOOL},
    {.name = "blockOwnerDeletion", .type = STW_T_BOOL},
    {0},
};
static const struct stw_field owner = {.name = "", .type = STW_T_OBJECT, .fields = owner_rows};

/* metav1.ManagedFieldsEntry.  The API server forgets entries with other values. */
static const struct stw_field managed_rows[] = {
    {.name = "manager", .type = STW_T_STRING},
    {.name = "operation", .type = STW_T_STRING},
    {.name = "apiVersion", .type = STW_T_STRING},
    {.name = "time", .type = STW_T_STRING, .check = check_time},
    {.name = "fieldsType", .type = STW_T_STRING},
    {.name = "fieldsV1", .type = STW_T_RAW},
    {.name = "subresource", .type = STW_T_STRING},
    {0},
};
static const struct stw_field managed = {.name = "", .type = STW_T_OBJECT, .fields = managed_rows};

/* metav1.ObjectMeta */
static const struct stw_field metadata_rows[] = {
    {.name = "name", .type = STW_T_STRING},
    {.name = "generateName", .type = STW_T_STRING, .check = check_generate_name},
    {.name = "namespace", .type = STW_T_STRING, .check = check_namespace},
    {.name = "labels", .type = STW_T_MAP, .item = &text},
    {.name = "annotations", .type = STW_T_MAP, .item = &text},
    {.name = "finalizers", .type = STW_T_LIST, .item = &finalizer},
    {.name = "ownerReferences", .type = STW_T_LIST, .item = &owner},
    {.name = "managedFields", .type = STW_T_LIST, .item = &managed},
    {.name = "selfLink", .type = STW_T_STRING},
    {.name = "uid", .type = STW_T_STRING},
    {.name = "resourceVersion", .type = STW_T_STRING},
    {.name = "generation", .type = STW_T_INT},
    {.name = "creationTimestamp", .type = STW_T_STRING, .check = check_time},
    {.name = "deletionTimestamp", .type = STW_T_STRING, .check = check_time},
    {.name = "deletionGracePeriodSeconds", .type = STW_T_INT},
    {0},
};

static void check_owners(struct stw_json owners, struct stw_findings *f)
{
    struct stw_json key, one;
    uint32_t i = 0, controllers = 0;
    stw_json_foreach (owners, key, one) {
        controllers += stw_json_type(stw_json_get(one, "controller")) == STW_JSON_TRUE;
        if (stw_json_is(stw_json_get(one, "apiVersion"), "v1") &&
            stw_json_is(stw_json_get(one, "kind"), "Event")) {
            char path[64];
            stw_format(path, sizeof(path), "metadata.ownerReferences[%u]", i);
            stw_findings_add(f, path, STW_INVALID, NULL, "an Event cannot be an owner");
        }
        i++;
    }
    if (controllers > 1)
        stw_findings_add(f, "metadata.ownerReferences", STW_INVALID, NULL,
                         "only one owner can be the controller");
}

/* The garbage collector can do one of both. */
static void check_finalizers(struct stw_json finalizers, struct stw_findings *f)
{
    struct stw_json key, one;
    bool orphan = false, foreground = false;
    stw_json_foreach (finalizers, key, one) {
        orphan |= stw_json_is(one, "orphan");
        foreground |= stw_json_is(one, "foregroundDeletion");
    }
    if (orphan && foreground)
        stw_findings_add(f, "metadata.finalizers", STW_INVALID, NULL,
                         "orphan and foregroundDeletion cannot be set both");
}

static void check_metadata(struct stw_json metadata, struct stw_arena *arena,
                           struct stw_findings *f)
{
    const struct stw_path at = {.name = "metadata"};
    if (stw_json_type(metadata) != STW_JSON_OBJECT)
        return; /* reported already */
    stw_check_fields(&at, metadata_rows, metadata, arena, f);
    check_finalizers(stw_json_get(metadata, "finalizers"), f);
    check_owners(stw_json_get(metadata, "ownerReferences"), f);
    stw_core_check_labels(stw_json_get(metadata, "labels"), "metadata.labels", f);
    stw_core_check_annotations(stw_json_get(metadata, "annotations"), "metadata.annotations", f);
}

static size_t count_rows(const struct stw_field *rows)
{
    size_t n = 0;
    while (rows && rows[n].name)
        n++;
    return n;
}

/* The fields of every status and those of the kind, in one table; NULL: no memory. */
static const struct stw_field *join_status_rows(const struct stw_kind *k, struct stw_arena *arena)
{
    size_t common = count_rows(stw_status_common), own = count_rows(k->status);
    struct stw_field *rows = stw_arena_alloc(arena, (common + own + 1) * sizeof(*rows));
    if (!rows)
        return NULL;
    memcpy(rows, stw_status_common, common * sizeof(*rows));
    if (own > 0)
        memcpy(rows + common, k->status, own * sizeof(*rows));
    rows[common + own] = (struct stw_field){0};
    return rows;
}

/* The API server ignores the values in a manifest's status, but not unknown members. */
static void check_status(const struct stw_admission *a, struct stw_json status,
                         struct stw_arena *arena, struct stw_findings *f)
{
    const struct stw_path at = {.name = "status"};
    stw_autofindings struct stw_findings all = {.strict = true, .cpu_end_ns = f->cpu_end_ns};
    const struct stw_field *rows = join_status_rows(a->kind, arena);
    f->failed |= !rows;
    if (!rows || !stw_json_there(status))
        return;
    if (stw_json_type(status) != STW_JSON_OBJECT) {
        stw_findings_at(f, "status", STW_INVALID, status, "must be an object");
        return;
    }
    stw_check_fields(&at, rows, status, arena, &all);
    f->failed |= all.failed;
    f->spent |= all.spent;
    for (size_t i = 0; i < all.error_count; i++)
        if (all.errors[i].code == STW_UNKNOWN_FIELD)
            stw_findings_add(f, all.errors[i].path, STW_UNKNOWN_FIELD, NULL, "%s",
                             all.errors[i].message);
}

void stw_check_envelope(const struct stw_admission *a, struct stw_arena *arena,
                        struct stw_findings *f)
{
    check_metadata(stw_json_get(a->object, "metadata"), arena, f);
    check_status(a, stw_json_get(a->object, "status"), arena, f);
}

/* --- changes */

static bool same_time(struct stw_json a, struct stw_json b)
{
    char x[64], y[64];
    int64_t s = 0, t = 0;
    return stw_json_strcpy(a, x, sizeof(x)) == 0 && stw_json_strcpy(b, y, sizeof(y)) == 0 &&
           stw_time_parse(x, &s) == 0 && stw_time_parse(y, &t) == 0 && s == t;
}

/* Members that the API server sets.  It ignores what a manifest says of all others of that sort
 * (generation, creationTimestamp, managedFields, selfLink), and keeps the old value of these where
 * the manifest says nothing. */
static void check_kept(struct stw_json now, struct stw_json old, struct stw_findings *f)
{
    static const struct {
        const char *name, *path;
        bool always; /* else only if the old object, which may be a file without it, has it */
        const char *message;
    } rows[] = {
        {"deletionTimestamp", "metadata.deletionTimestamp", true, "field is immutable"},
        {"deletionGracePeriodSeconds", "metadata.deletionGracePeriodSeconds", true,
         "field is immutable"},
        {"uid", "metadata.uid", false, "field is immutable"},
        {"resourceVersion", "metadata.resourceVersion", false,
         "the object has been modified; leave this field out"},
    };
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        struct stw_json was = stw_json_get(old, rows[i].name), is = stw_json_get(now, rows[i].name);
        bool set = stw_json_there(is) && !stw_json_is(is, "");
        if (set && (rows[i].always || stw_json_there(was)) && !stw_json_equal(was, is) &&
            !same_time(was, is))
            stw_findings_at(f, rows[i].path, STW_INVALID, is, "%s", rows[i].message);
    }
}

static bool has_text(struct stw_json list, struct stw_json value)
{
    struct stw_json key, one;
    stw_json_foreach (list, key, one)
        if (stw_json_equal(one, value))
            return true;
    return false;
}

static void check_new_finalizers(struct stw_json now, struct stw_json old, struct stw_findings *f)
{
    struct stw_json key, one;
    uint32_t i = 0;
    if (stw_json_size(now) > STW_ENTRIES_MAX || stw_json_size(old) > STW_ENTRIES_MAX)
        return;
    stw_json_foreach (now, key, one) {
        char path[64];
        stw_format(path, sizeof(path), "metadata.finalizers[%u]", i++);
        if (!has_text(old, one))
            stw_findings_add(f, path, STW_FORBIDDEN, NULL,
                             "no finalizer can be added to an object that is being deleted");
    }
}

bool stw_is_leaving(const struct stw_admission *a)
{
    return a->operation == STW_UPDATE &&
           stw_json_there(stw_json_path(a->old_object, "metadata.deletionTimestamp"));
}

void stw_check_server_fields(const struct stw_admission *a, struct stw_findings *f)
{
    struct stw_json now = stw_json_get(a->object, "metadata"),
                    old = stw_json_get(a->old_object, "metadata");
    check_kept(now, old, f);
    if (stw_is_leaving(a))
        check_new_finalizers(stw_json_get(now, "finalizers"), stw_json_get(old, "finalizers"), f);
}
