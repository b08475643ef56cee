/* SPDX-License-Identifier: Apache-2.0
 *
 * The result of a snapshot as an agent reports it, in its termination message.  The kubelet
 * truncates that at 4096 bytes, so long texts come last and are shortened before. */
#include "base/util.h"
#include "controller/condition.h"
#include "kinds/etcdbackup/snapshot.h"

#include <assert.h>
#include <stdio.h>

static const char *const faults[] = {
    [EB_SNAPSHOT_FINE] = "None",   [EB_SNAPSHOT_SOURCE] = "Source",
    [EB_SNAPSHOT_STORE] = "Store", [EB_SNAPSHOT_CONTENT] = "Content",
    [EB_SNAPSHOT_OTHER] = "Other",
};
static_assert(STW_COUNT(faults) == EB_SNAPSHOT_FAULTS, "one name for each fault");

static void add_member(struct stw_buf *out, const char *name, const char *text)
{
    char clean[STW_STORE_KEY_MAX + 1];
    if (!*text)
        return;
    stw_format(clean, sizeof(clean), "%s", text);
    stw_message_clean(clean, sizeof(clean) - 1); /* a server's message may contain any bytes */
    stw_buf_addf(out, ",\"%s\":", name);
    stw_buf_json_strz(out, clean);
}

static void add_number(struct stw_buf *out, const char *name, uint64_t value)
{
    if (value > 0)
        stw_buf_addf(out, ",\"%s\":%llu", name, (unsigned long long)value);
}

void eb_snapshot_write(const struct eb_snapshot *s, struct stw_buf *out)
{
    stw_buf_addf(out, "{\"ok\":%s", s->fault == EB_SNAPSHOT_FINE ? "true" : "false");
    add_member(out, "key", s->key);
    add_number(out, "revision", s->revision);
    add_number(out, "sizeBytes", s->size_bytes);
    add_member(out, "sha256", s->sha256);
    add_member(out, "etcdVersion", s->version);
    add_member(out, "endpoint", s->endpoint);
    add_number(out, "time", (uint64_t)STW_MAX(s->time, 0));
    stw_buf_addf(out, ",\"verified\":%s", s->verified ? "true" : "false");
    add_number(out, "pruned", s->pruned);
    if (s->fault != EB_SNAPSHOT_FINE) {
        add_member(out, "fault", faults[s->fault]);
        add_member(out, "reason", s->reason);
        add_member(out, "error", s->err.text);
    }
    add_member(out, "pruneError", s->prune_error);
    stw_buf_addc(out, '}');
}

static uint64_t read_number_field(struct stw_json root, const char *name)
{
    int64_t value = 0;
    (void)stw_json_int(stw_json_get(root, name), &value);
    return value > 0 ? (uint64_t)value : 0;
}

static enum eb_snapshot_fault fault_of(struct stw_json root)
{
    struct stw_json name = stw_json_get(root, "fault");
    if (stw_json_bool(stw_json_get(root, "ok"), false))
        return EB_SNAPSHOT_FINE;
    for (size_t i = EB_SNAPSHOT_SOURCE; i < STW_COUNT(faults); i++)
        if (stw_json_is(name, faults[i]))
            return (enum eb_snapshot_fault)i;
    return EB_SNAPSHOT_OTHER;
}

int eb_snapshot_read(const char *text, size_t len, struct eb_snapshot *ret)
{
    stw_autojson struct stw_json_doc doc = {0};
    *ret = (struct eb_snapshot){0};
    if (stw_json_scan(&doc, text, len, NULL) != 0)
        return -1;
    struct stw_json root = stw_json_root(&doc);
    if (!stw_json_there(stw_json_get(root, "ok")))
        return -1;
    const struct {
        const char *name;
        char *to;
        size_t size;
    } texts[] = {
        {"key", ret->key, sizeof(ret->key)},
        {"sha256", ret->sha256, sizeof(ret->sha256)},
        {"etcdVersion", ret->version, sizeof(ret->version)},
        {"endpoint", ret->endpoint, sizeof(ret->endpoint)},
        {"reason", ret->reason, sizeof(ret->reason)},
        {"error", ret->err.text, sizeof(ret->err.text)},
        {"pruneError", ret->prune_error, sizeof(ret->prune_error)},
    };
    for (size_t i = 0; i < STW_COUNT(texts); i++)
        (void)stw_json_strcpy(stw_json_get(root, texts[i].name), texts[i].to, texts[i].size);
    ret->revision = read_number_field(root, "revision");
    ret->size_bytes = read_number_field(root, "sizeBytes");
    ret->time = (int64_t)read_number_field(root, "time");
    ret->pruned = (unsigned)STW_MIN(read_number_field(root, "pruned"), (uint64_t)UINT32_MAX);
    ret->verified = stw_json_bool(stw_json_get(root, "verified"), false);
    ret->fault = fault_of(root);
    if (ret->fault != EB_SNAPSHOT_FINE)
        ret->err.code = STW_ERR_UNAVAILABLE;
    return 0;
}
