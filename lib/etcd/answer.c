/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses answers of the gateway.  It writes 64-bit numbers as strings, and leaves out values that
 * are zero, false or empty.  Unknown members of an object are ignored. */
#include "base/util.h"
#include "etcd/etcd_priv.h"

static int refuse_answer(struct stw_error *err, const char *what)
{
    return stw_fail(err, STW_ERR_INVALID, "etcd's answer is not understood: %s", what);
}

static int scan_answer(struct stw_json_doc *doc, const char *text, size_t len,
                       struct stw_error *err)
{
    struct stw_error why = {0};
    doc->max = STW_ETCD_ANSWER_VALUES_MAX;
    if (stw_json_scan(doc, text, len, &why) != 0)
        return refuse_answer(err, why.text);
    if (stw_json_type(stw_json_root(doc)) != STW_JSON_OBJECT)
        return refuse_answer(err, "it is not an object");
    return 0;
}

int stw_etcd_read_u64(struct stw_json v, uint64_t *ret)
{
    char text[24];
    uint64_t n = 0;
    int64_t number;
    if (!stw_json_there(v)) {
        *ret = 0;
        return 0;
    }
    if (stw_json_int(v, &number) == 0 && number >= 0) {
        *ret = (uint64_t)number;
        return 0;
    }
    if (stw_json_strcpy(v, text, sizeof(text)) != 0 || !text[0])
        return -1;
    for (const char *p = text; *p; p++)
        if (*p < '0' || *p > '9' || __builtin_mul_overflow(n, UINT64_C(10), &n) ||
            __builtin_add_overflow(n, (uint64_t)(*p - '0'), &n))
            return -1;
    *ret = n;
    return 0;
}

static int read_i64(struct stw_json v, int64_t *ret)
{
    uint64_t n;
    if (stw_etcd_read_u64(v, &n) != 0 || n > INT64_MAX)
        return -1;
    *ret = (int64_t)n;
    return 0;
}

/* "3.5.16"; of "3.6.0-rc.1" only the part before the dash. */
static void read_version(struct stw_json v, struct stw_semver *ret)
{
    char text[64];
    if (stw_json_strcpy(v, text, sizeof(text)) != 0)
        return;
    text[strcspn(text, "-+")] = '\0';
    (void)stw_semver_parse(text, ret);
}

int stw_etcd_read_status(const char *text, size_t len, struct stw_etcd_health *ret,
                         struct stw_error *err)
{
    stw_autojson struct stw_json_doc doc = {0};
    if (scan_answer(&doc, text, len, err) != 0)
        return -1;
    struct stw_json root = stw_json_root(&doc), header = stw_json_get(root, "header");
    struct stw_json downgrade = stw_json_get(root, "downgradeInfo");
    struct stw_etcd_health h = {0};
    if (stw_etcd_read_u64(stw_json_get(header, "cluster_id"), &h.cluster_id) |
        stw_etcd_read_u64(stw_json_get(header, "member_id"), &h.member_id) |
        stw_etcd_read_u64(stw_json_get(header, "revision"), &h.revision) |
        stw_etcd_read_u64(stw_json_get(root, "leader"), &h.leader_id) |
        stw_etcd_read_u64(stw_json_get(root, "raftTerm"), &h.raft_term) |
        stw_etcd_read_u64(stw_json_get(root, "raftIndex"), &h.raft_index) |
        stw_etcd_read_u64(stw_json_get(root, "raftAppliedIndex"), &h.raft_applied_index) |
        read_i64(stw_json_get(root, "dbSize"), &h.db_size) |
        read_i64(stw_json_get(root, "dbSizeInUse"), &h.db_size_in_use))
        return refuse_answer(err, "a value of the status is not a number");
    if (h.cluster_id == 0 || h.member_id == 0)
        return refuse_answer(err, "the status names no cluster and no member");
    h.learner = stw_json_bool(stw_json_get(root, "isLearner"), false);
    read_version(stw_json_get(root, "version"), &h.version);
    read_version(stw_json_get(root, "storageVersion"), &h.storage_version);
    if (stw_json_bool(stw_json_get(downgrade, "enabled"), false))
        read_version(stw_json_get(downgrade, "targetVersion"), &h.downgrade_to);
    h.answers = true;
    *ret = h;
    return 0;
}

int stw_etcd_read_revision(const char *text, size_t len, uint64_t *ret, struct stw_error *err)
{
    stw_autojson struct stw_json_doc doc = {0};
    if (scan_answer(&doc, text, len, err) != 0)
        return -1;
    struct stw_json header = stw_json_get(stw_json_root(&doc), "header");
    if (stw_json_type(header) != STW_JSON_OBJECT)
        return refuse_answer(err, "it has no header");
    if (stw_etcd_read_u64(stw_json_get(header, "revision"), ret) != 0)
        return refuse_answer(err, "the revision is not a number");
    return 0;
}

static int read_member(struct stw_json from, struct stw_etcd_member *ret)
{
    struct stw_json name = stw_json_get(from, "name");
    struct stw_json url = stw_json_at(stw_json_get(from, "peerURLs"), 0);
    if (stw_etcd_read_u64(stw_json_get(from, "ID"), &ret->id) != 0 || ret->id == 0)
        return -1;
    if (stw_json_there(name) && stw_json_strcpy(name, ret->name, sizeof(ret->name)) != 0)
        return -1;
    if (stw_json_there(url) && stw_json_strcpy(url, ret->peer_url, sizeof(ret->peer_url)) != 0)
        return -1;
    ret->learner = stw_json_bool(stw_json_get(from, "isLearner"), false);
    return 0;
}

static int read_members(struct stw_json root, struct stw_etcd_members *ret, struct stw_error *err)
{
    struct stw_json list = stw_json_get(root, "members");
    struct stw_json header = stw_json_get(root, "header"), key, value;
    if (stw_etcd_read_u64(stw_json_get(header, "cluster_id"), &ret->cluster_id) != 0 ||
        ret->cluster_id == 0)
        return refuse_answer(err, "the list of members names no cluster");
    if (stw_etcd_read_u64(stw_json_get(header, "revision"), &ret->revision) != 0)
        return refuse_answer(err, "the revision is not a number");
    if (stw_json_type(list) != STW_JSON_ARRAY || stw_json_size(list) == 0)
        return refuse_answer(err, "the list of members is empty");
    if (stw_json_size(list) > STW_ETCD_MEMBERS_MAX)
        return stw_fail(err, STW_ERR_TOO_LARGE, "the cluster has %u members, at most %d are read",
                        stw_json_size(list), STW_ETCD_MEMBERS_MAX);
    stw_json_foreach (list, key, value)
        if (read_member(value, &ret->all[ret->count++]) != 0)
            return refuse_answer(err, "a member of the list");
    return 0;
}

int stw_etcd_read_members(const char *text, size_t len, struct stw_etcd_members *ret,
                          struct stw_error *err)
{
    stw_autojson struct stw_json_doc doc = {0};
    if (scan_answer(&doc, text, len, err) != 0)
        return -1;
    stw_autofree struct stw_etcd_members *m = calloc(1, sizeof(*m));
    if (!m)
        return stw_fail_memory(err);
    if (read_members(stw_json_root(&doc), m, err) != 0)
        return -1;
    *ret = *m;
    return 0;
}

int stw_etcd_read_added(const char *text, size_t len, uint64_t *ret_id, struct stw_error *err)
{
    stw_autojson struct stw_json_doc doc = {0};
    uint64_t id = 0;
    if (scan_answer(&doc, text, len, err) != 0)
        return -1;
    if (stw_etcd_read_u64(stw_json_path(stw_json_root(&doc), "member.ID"), &id) != 0 || id == 0)
        return refuse_answer(err, "the new member has no ID");
    *ret_id = id;
    return 0;
}

static unsigned alarm_of(struct stw_json name)
{
    return stw_json_is(name, "NOSPACE")   ? STW_ETCD_ALARM_NOSPACE
           : stw_json_is(name, "CORRUPT") ? STW_ETCD_ALARM_CORRUPT
                                          : 0;
}

/* Skips alarms of kinds that later versions may have. */
static int read_alarms(struct stw_json list, struct stw_etcd_alarms *ret, struct stw_error *err)
{
    struct stw_json key, value;
    stw_json_foreach (list, key, value) {
        unsigned alarm = alarm_of(stw_json_get(value, "alarm"));
        uint64_t id = 0;
        if (stw_etcd_read_u64(stw_json_get(value, "memberID"), &id) != 0)
            return refuse_answer(err, "an alarm's member");
        if (!alarm || ret->count == STW_ETCD_MEMBERS_MAX)
            continue;
        ret->all[ret->count].member_id = id;
        ret->all[ret->count++].alarm = alarm;
    }
    return 0;
}

int stw_etcd_read_alarms(const char *text, size_t len, struct stw_etcd_alarms *ret,
                         struct stw_error *err)
{
    stw_autojson struct stw_json_doc doc = {0};
    struct stw_etcd_alarms alarms = {0};
    if (scan_answer(&doc, text, len, err) != 0)
        return -1;
    struct stw_json list = stw_json_get(stw_json_root(&doc), "alarms");
    if (stw_json_there(list) && stw_json_type(list) != STW_JSON_ARRAY)
        return refuse_answer(err, "the alarms are not a list");
    if (read_alarms(list, &alarms, err) != 0)
        return -1;
    *ret = alarms;
    return 0;
}

int stw_etcd_read_token(const char *text, size_t len, char ret[STW_ETCD_TOKEN_MAX],
                        struct stw_error *err)
{
    stw_autojson struct stw_json_doc doc = {0};
    char token[STW_ETCD_TOKEN_MAX] = "";
    int r = 0;
    if (scan_answer(&doc, text, len, err) != 0)
        return -1;
    if (stw_json_strcpy(stw_json_get(stw_json_root(&doc), "token"), token, sizeof(token)) != 0 ||
        !token[0] || strpbrk(token, "\r\n"))
        r = refuse_answer(err, "the login returned no token");
    else
        memcpy(ret, token, sizeof(token));
    stw_wipe(token, sizeof(token));
    return r;
}
