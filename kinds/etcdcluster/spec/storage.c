/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules on the storage of members: spec.storage, or a volume claim in the form of the old API. */
#include "base/util.h"
#include "kinds/etcdcluster/spec/rules.h"
#include "schema/names.h"

#include <stdio.h>

#define NANO 1000000000
#define MIB ((stw_quantity)1024 * 1024 * NANO)
#define SIZE_MIN (1024 * MIB)
#define QUOTA_DEFAULT (2048 * MIB)
#define SIZE_DEFAULT (8192 * MIB)
#define TIMES_QUOTA 3 /* the file, a copy during defragmentation, snapshots and the log */

static const char storage_size[] = "storage.size";
static const char claim_size[] = "pod.persistentVolumeClaimSpec.resources.requests[storage]";

/* The volume as requested in the spec. */
struct volume {
    bool claim;            /* requested with a claim's spec */
    const char *medium;    /* "Auto", "Persistent", "EmptyDir" */
    struct stw_json size;  /* absent: the default */
    const char *size_path; /* below the spec */
    bool good;             /* it is a quantity */
    stw_quantity bytes;    /* in nano-units */
};

static struct volume volume_of(const struct ec_spec *c)
{
    struct volume v = {.claim = stw_json_there(c->pod.claim_spec)};
    struct stw_json requests =
        stw_json_get(stw_json_get(c->pod.claim_spec, "resources"), "requests");
    v.medium = v.claim ? "Persistent" : c->storage.medium;
    v.size = v.claim ? stw_json_get(requests, "storage") : c->storage.size;
    v.size_path = v.claim ? claim_size : storage_size;
    v.bytes = SIZE_DEFAULT;
    v.good = stw_json_there(v.size) ? stw_quantity_of(v.size, &v.bytes) == 0 : !v.claim;
    return v;
}

static void check_size(const struct ec_scene *s, const struct volume *v)
{
    stw_quantity quota = QUOTA_DEFAULT;
    struct stw_json q = s->now->options.quota_backend_bytes;
    if (stw_json_there(q))
        (void)stw_quantity_of(q, &quota);
    if (v->claim && !stw_json_there(v->size))
        ec_require(s, claim_size, "");
    else if (v->good && v->bytes < SIZE_MIN)
        ec_refuse_node(s, v->size_path, v->size, EC_SMALL_VOLUME);
    else if (v->good && v->bytes < TIMES_QUOTA * quota && !stw_streq(v->medium, "EmptyDir"))
        stw_findings_warn(s->f,
                          "%s is less than three times options.quotaBackendBytes: a full database "
                          "may not leave the room to defragment it",
                          ec_path(s, v->size_path).text);
}

/* The size as written in the spec. */
static void size_text(const struct volume *v, char out[64])
{
    size_t len = 3;
    const char *raw = stw_json_there(v->size) ? stw_json_raw(v->size, &len) : "8Gi";
    bool quoted = stw_json_type(v->size) == STW_JSON_STRING;
    stw_format(out, 64, "%.*s", (int)STW_MIN(len - (quoted ? 2 : 0), 63), raw + quoted);
}

static bool is_empty_dir(const struct ec_scene *s, const struct volume *v)
{
    return stw_streq(v->medium, "EmptyDir") ||
           stw_json_is(stw_json_path(s->status, "storage.medium"), "EmptyDir");
}

static void check_shrink(const struct ec_scene *s, const struct volume *now,
                         const struct volume *was)
{
    char old[64];
    if (!now->good || !was->good)
        return;
    size_text(was, old);
    if (now->bytes < was->bytes)
        ec_refuse_node(s, now->size_path, now->size, EC_NO_SHRINKING " (was %s)", old);
    else if (now->bytes > was->bytes && !is_empty_dir(s, now))
        stw_findings_warn(s->f,
                          "%s: volumes are expanded one at a time where their StorageClass allows "
                          "it; the condition Resizing names those that cannot be",
                          ec_path(s, now->size_path).text);
}

/* Once steward has settled on a medium, it cannot change. */
static void check_medium(const struct ec_scene *s, const struct volume *now)
{
    char latched[32];
    struct stw_json v = stw_json_path(s->status, "storage.medium");
    if (stw_json_strcpy(v, latched, sizeof(latched)) != 0 || stw_streq(now->medium, "Auto") ||
        stw_streq(now->medium, latched))
        return;
    ec_forbid(s, now->claim ? "pod.persistentVolumeClaimSpec" : "storage.medium",
              "field is immutable (was \"%s\")", latched);
}

/* Only the size in a claim's spec may change. */
static void check_claim(const struct ec_scene *s)
{
    static const char *const fixed[] = {"accessModes", "selector", "storageClassName",
                                        "volumeMode"};
    struct stw_json now = s->now->pod.claim_spec, was = s->old->pod.claim_spec;
    char path[96];
    if (stw_json_there(now) != stw_json_there(was)) {
        ec_forbid(s, "pod.persistentVolumeClaimSpec", "field is immutable (was %s)",
                  stw_json_there(was) ? "set" : "not set");
        return;
    }
    for (size_t i = 0; i < STW_COUNT(fixed); i++) {
        struct stw_json x = stw_json_get(now, fixed[i]), y = stw_json_get(was, fixed[i]);
        bool there = stw_json_there(x);
        if (there == stw_json_there(y) && (!there || stw_json_equal(x, y)))
            continue;
        stw_format(path, sizeof(path), "pod.persistentVolumeClaimSpec.%s", fixed[i]);
        ec_forbid(s, path, EC_IMMUTABLE);
    }
}

void ec_check_storage(const struct ec_scene *s)
{
    struct volume now = volume_of(s->now);
    check_size(s, &now);
    if (now.claim && stw_json_there(stw_json_get(s->json, "storage")))
        ec_forbid(s, "pod.persistentVolumeClaimSpec", EC_ONE_STORAGE);
    if (stw_streq(now.medium, "EmptyDir"))
        stw_findings_warn(s->f, "%s EmptyDir: data is lost when all members stop",
                          ec_path(s, "storage.medium").text);
    if (s->old) {
        struct volume was = volume_of(s->old);
        check_shrink(s, &now, &was);
        check_medium(s, &now);
        check_claim(s);
    }
}
