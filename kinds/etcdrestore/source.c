/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the backup that an EtcdRestore refers to. */
#include "base/util.h"
#include "kinds/etcdbackup/reconcile.h"
#include "kinds/etcdrestore/run_priv.h"

#include <stdio.h>

static int wait_for_backup(struct er *e, const char *reason, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Records the reason why the backup is not there; it may still appear. */
static int wait_for_backup(struct er *e, const char *reason, const char *fmt, ...)
{
    va_list ap;
    stw_format(e->state.reason, sizeof(e->state.reason), "%s", reason);
    va_start(ap, fmt);
    stw_vformat(e->state.error, sizeof(e->state.error), fmt, ap);
    va_end(ap);
    return -1;
}

void er_source_done(struct er_source *s)
{
    stw_object_done(&s->object);
}

/* --- by reference to an EtcdBackup */

static bool is_uri(struct stw_json artifact, const char *uri)
{
    return stw_json_is(stw_json_get(artifact, "uri"), uri);
}

/* The artifact with this uri; NULL: the newest verified one. */
static struct stw_json find_artifact(struct stw_json artifacts, const char *uri)
{
    struct stw_json key, one;
    stw_json_foreach (artifacts, key, one)
        if (uri ? is_uri(one, uri) : stw_json_bool(stw_json_get(one, "verified"), false))
            return one;
    return STW_JSON_NONE;
}

/* `uri` is "s3://bucket/key" or "pvc://claim/path" in that EtcdBackup's own store. */
static int take_uri(struct er *e, const char *uri)
{
    struct er_source *s = &e->source;
    const struct eb_spec *b = &s->backup;
    const char *rest = strstr(uri, "://");
    rest = rest ? rest + 3 : "";
    const char *slash = strchr(rest, '/');
    s->volume = strncmp(uri, "pvc://", 6) == 0;
    s->s3 = b->s3;
    if (!slash || s->volume != stw_same(b->storage_type, "PVC"))
        return wait_for_backup(e, "BackupNotFound", "EtcdBackup \"%s\" has no backup \"%.200s\"",
                               e->spec.backup.name, uri);
    if (s->volume)
        stw_format(s->claim, sizeof(s->claim), "%.*s", (int)STW_MIN(slash - rest, 253), rest);
    stw_format(s->path, sizeof(s->path), "%s", s->volume ? slash + 1 : rest);
    return 0;
}

static void take_artifact(struct er_source *s, struct stw_json artifact)
{
    int64_t revision = 0;
    (void)stw_json_strcpy(stw_json_get(artifact, "sha256"), s->sha256, sizeof(s->sha256));
    (void)stw_json_strcpy(stw_json_get(artifact, "etcdVersion"), s->version, sizeof(s->version));
    (void)stw_json_int(stw_json_get(artifact, "revision"), &revision);
    s->revision = revision > 0 ? (uint64_t)revision : 0;
}

static int by_backup(struct er *e)
{
    struct er_source *s = &e->source;
    const char *uri = *e->state.uri ? e->state.uri : e->spec.backup.uri;
    char key[STW_KEY_LEN], found[ER_URI_MAX];
    struct stw_informer *cache = stw_run_other_cache(e->run, &stw_controller_etcdbackup);
    struct stw_error err = {0};
    if (!cache)
        return wait_for_backup(e, "BackupNotFound",
                               "steward runs without the kind EtcdBackup (--kinds), and so cannot "
                               "find the EtcdBackup \"%s\": name the snapshot itself",
                               e->spec.backup.name);
    stw_key_make(e->run->ns, e->spec.backup.name, key);
    int rc = stw_object_load_other(e->run, &stw_controller_etcdbackup, key, &s->object, &err);
    if (rc < 0)
        return wait_for_backup(e, "BackupNotFound", "EtcdBackup \"%s\" cannot be read: %s",
                               e->spec.backup.name, err.text);
    if (rc > 0 || stw_kind_decode(&stw_kind_etcdbackup, stw_json_get(s->object.root, "spec"),
                                  e->arena, &s->backup, NULL) != 0)
        return wait_for_backup(e, "BackupNotFound", "there is no EtcdBackup \"%s\"",
                               e->spec.backup.name);
    struct stw_json artifacts = stw_json_path(s->object.root, "status.artifacts");
    struct stw_json artifact = find_artifact(artifacts, uri);
    take_artifact(s, artifact);
    if (!uri && stw_json_strcpy(stw_json_get(artifact, "uri"), found, sizeof(found)) != 0)
        return wait_for_backup(e, "BackupNotFound", "EtcdBackup \"%s\" has no verified backup yet",
                               e->spec.backup.name);
    return take_uri(e, uri ? uri : found);
}

/* --- by reference to the store itself */

static void revision_of(struct er_source *s)
{
    struct eb_snapshot_name name;
    const char *base = strrchr(s->path, '/');
    char prefix[ER_URI_MAX];
    base = base ? base + 1 : s->path;
    stw_format(prefix, sizeof(prefix), "%s", base);
    for (char *v = strstr(prefix, "_v"); v; v = strstr(v + 1, "_v")) {
        char *cut = strndup(prefix, (size_t)(v - prefix));
        if (cut && eb_snapshot_key_parse(cut, base, &name) == 0)
            s->revision = name.revision;
        free(cut);
    }
}

int er_source_find(struct er *e)
{
    struct er_source *s = &e->source;
    int rc = 0;
    if (e->spec.backup.name) {
        rc = by_backup(e);
    } else if (e->spec.pvc.claim) {
        s->volume = true;
        stw_format(s->claim, sizeof(s->claim), "%s", e->spec.pvc.claim);
        stw_format(s->path, sizeof(s->path), "%s", e->spec.pvc.path);
    } else {
        s->s3 = e->spec.s3;
        stw_format(s->path, sizeof(s->path), "%s", e->spec.s3.path);
    }
    if (rc != 0)
        return -1;
    if (!s->revision)
        revision_of(s);
    if (!*e->state.uri)
        stw_format(e->state.uri, sizeof(e->state.uri), "%s%s%s%.1700s",
                   s->volume ? "pvc://" : "s3://", s->claim, s->volume ? "/" : "", s->path);
    return 0;
}
