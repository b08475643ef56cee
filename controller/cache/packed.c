/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/packed.h"

#include "base/base64.h"
#include "base/util.h"

#include <limits.h>
#define ZLIB_CONST /* makes z_stream.next_in const */
#include <zlib.h>

#define UNPACKED_MAX (8u << 20)
#define WINDOW_BITS (-12) /* raw, 4 KiB: more than an object and the dictionary */
#define MEMORY_LEVEL 5

/* Common parts of objects, the most frequent last (RFC 1950, section 2.2).  It is never stored, so
 * it may change with each release. */
static const char dictionary[] =
    "{\"concurrencyPolicy\":\"Forbid\",\"deploymentname\":\"\",\"enabled\":true,\"historyLimit\":5,"
    "\"jitterSeconds\":0,\"requireHealthy\":true,\"rolloutTimeoutSeconds\":600,\"schedule\":"
    "\"0 0 * * *\",\"startingDeadlineSeconds\":600,\"timeZone\":\"Etc/UTC\"},\"status\":{"
    "\"activeSchedule\":{\"schedule\":\"0 0 * * *\",\"since\":\"2026-\"Active\",\"Deployment "
    "\\\"\\\" is "
    "restarted by \\\"0 0 * * *\\\" in Etc/UTC\"],[\"ScheduleValid\",\"True\",1,\"Valid\",\"\\\"0 "
    "0 * * "
    "*\\\" in Etc/UTC\"],[\"TargetFound\",\"True\",1,\"Found\",\"Deployment \\\"\\\" is there\"],"
    "[\"RolloutComplete\",\"True\",1,\"Complete\",\"the latest restart of Deployment \\\"\\\" is "
    "complete\"]"
    "\"history\":[{\"durationSeconds\":10,\"instant\":\"2026-\"reason\":\"RolloutSucceeded\","
    "\"result\":\"Succeeded\"},\"lastRestartTime\":\"\"lastResult\":\"\"lastScheduleTime\":\""
    "\"nextScheduleTime\":\"2026-"
    "\"retry\":{\"count\":1,\"lastError\":\"target \\\"\",\"nextTime\":\"202"
    "[\"Reconciling\",\"True\",1,\"[\"Stalled\",\"True\",1,\"ProgressingWithRetry\","
    "\"DependencyNotReady\",\"cannot be used: \",\"SecretNotFound\",\"foreignGrants\":[\""
    "\"steward.dev/reconcile-at\":\"deletionTimestamp\":\"SELECT, INSERT, UPDATE, DELETE\""
    "{\"metadata\":{\"name\":\"\",\"namespace\":\"\",\"uid\":\"\",\"generation\":1,"
    "\"creationTimestamp\":\"2026-01-01T00:00:00Z\",\"labels\":{\"target\":\"main\"},"
    "\"finalizers\":[\"mygroup.handsomeguy.cn/databaseuser\"]},"
    "\"spec\":{\"adoptionPolicy\":\"Fail\",\"deletionPolicy\":\"Delete\",\"grants\":["
    "{\"database\":\"\",\"grantOption\":false,\"privileges\":[\"SELECT\",\"INSERT\",\"UPDATE\","
    "\"DELETE\"]}],\"grantsPolicy\":\"Managed\",\"hosts\":[\"%\"],\"password\":{\"key\":"
    "\"password\",\"name\":\"\",\"trimNewline\":false},\"requireTLS\":\"None\","
    "\"resyncSeconds\":300,\"user\":\"\"},"
    "\"status\":{\"account\":\"@%\",\"conditions\":[[\"Ready\",\"True\",1,"
    "\"2026-01-01T00:00:00Z\",\"Succeeded\",\"account \\\"@%\\\" on target \\\"main\\\" is "
    "ready\"],"
    "[\"SecretResolved\",\"True\",1,\"2026-01-01T00:00:00Z\",\"Resolved\","
    "\"the password is in Secret \\\"\\\"\"],[\"TargetReachable\",\"True\",1,"
    "\"2026-01-01T00:00:00Z\",\"Reachable\",\"target \\\"main\\\" answers\"],[\"UserSynced\","
    "\"True\",1,\"2026-01-01T00:00:00Z\",\"Synced\",\"the account is as this object wants it\"],"
    "[\"GrantsSynced\",\"True\",1,\"2026-01-01T00:00:00Z\",\"Synced\","
    "\"the rights are as this object wants them\"]],\"currentGrants\":[\"DELETE, INSERT, SELECT, "
    "UPDATE ON .*\"],\"engine\":\"postgresql\",\"engine\":\"mariadb\",\"hosts\":[\"%\"],"
    "\"lastReconcileTime\":\"2026-01-01T00:00:00Z\",\"lastRotationTime\":\"2026-01-01T00:00:00Z\","
    "\"lastVerifiedTime\":\"2026-01-01T00:00:00Z\",\"observedGeneration\":1,\"owned\":true,"
    "\"ownershipMark\":\"steward.accounts: / (-4)\",\"passwordFingerprint\":\"\","
    "\"secretResourceVersion\":\"\",\"serverVersion\":\"10.11.6-MariaDB-0+deb12u1\","
    "\"target\":\"main\"}}";

static const Bytef *bytes_of(const char *text)
{
    return (const Bytef *)text;
}

static int deflate_text(const char *text, size_t len, struct stw_buf *ret)
{
    z_stream z = {0};
    if (len > UINT_MAX || deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, WINDOW_BITS,
                                       MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK)
        return -1;
    size_t room = deflateBound(&z, (uLong)len);
    char *to = stw_buf_reserve(ret, room);
    int rc = Z_MEM_ERROR;
    if (to && deflateSetDictionary(&z, bytes_of(dictionary), sizeof(dictionary) - 1) == Z_OK) {
        z.next_in = bytes_of(text);
        z.avail_in = (uInt)len;
        z.next_out = (Bytef *)to;
        z.avail_out = (uInt)room;
        rc = deflate(&z, Z_FINISH);
        ret->len += room - z.avail_out;
    }
    (void)deflateEnd(&z);
    return rc == Z_STREAM_END ? 0 : -1;
}

void stw_pack(const char *text, size_t len, struct stw_buf *out)
{
    stw_autobuf struct stw_buf packed = STW_BUF_INIT(2 * UNPACKED_MAX);
    if (deflate_text(text, len, &packed) != 0) {
        stw_buf_add(out, text, len);
        return;
    }
    stw_buf_adds(out, "[\"");
    stw_base64_encode(packed.data, packed.len, out);
    stw_buf_adds(out, "\"]");
}

/* Grows the buffer while inflating: the unpacked size is not stored. */
static int inflate_all(z_stream *z, struct stw_buf *ret)
{
    int rc = Z_OK;
    while (rc == Z_OK) {
        size_t room = ret->len + 2048;
        char *to = stw_buf_reserve(ret, room);
        if (!to)
            return -1;
        z->next_out = (Bytef *)to;
        z->avail_out = (uInt)room;
        rc = inflate(z, Z_NO_FLUSH);
        ret->len += room - z->avail_out;
    }
    if (rc != Z_STREAM_END)
        return -1;
    ret->data[ret->len] = '\0';
    return 0;
}

static int inflate_text(const struct stw_buf *packed, struct stw_buf *ret)
{
    z_stream z = {0};
    if (packed->len > UINT_MAX || inflateInit2(&z, WINDOW_BITS) != Z_OK)
        return -1;
    int rc = -1;
    if (inflateSetDictionary(&z, bytes_of(dictionary), sizeof(dictionary) - 1) == Z_OK) {
        z.next_in = bytes_of(stw_buf_str(packed));
        z.avail_in = (uInt)packed->len;
        rc = inflate_all(&z, ret);
    }
    (void)inflateEnd(&z);
    return rc;
}

struct stw_json stw_unpack_root(struct stw_json root, struct stw_buf *unpacked,
                                struct stw_json_doc *doc)
{
    stw_autobuf struct stw_buf packed = STW_BUF_INIT(2 * UNPACKED_MAX);
    if (stw_json_type(root) != STW_JSON_ARRAY)
        return root;
    *unpacked = STW_BUF_INIT(UNPACKED_MAX);
    if (stw_base64_json(stw_json_at(root, 0), &packed) != 0 ||
        inflate_text(&packed, unpacked) != 0 ||
        stw_json_scan(doc, unpacked->data, unpacked->len, NULL) != 0)
        return STW_JSON_NONE;
    return stw_json_root(doc);
}

int stw_unpack_scan(const char *text, size_t len, struct stw_buf *unpacked,
                    struct stw_json_doc *doc)
{
    stw_autojson struct stw_json_doc outer = {0};
    if (len > 0 && text[0] != '[')
        return stw_json_scan(doc, text, len, NULL);
    if (stw_json_scan(&outer, text, len, NULL) != 0)
        return -1;
    struct stw_json root = stw_unpack_root(stw_json_root(&outer), unpacked, doc);
    return stw_json_type(root) == STW_JSON_OBJECT ? 0 : -1;
}
