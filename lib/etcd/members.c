/* SPDX-License-Identifier: Apache-2.0
 *
 * The member list, and changes of it.  A change that ended in a timeout may have been made anyway:
 * the caller must read the list again. */
#include "base/util.h"
#include "etcd/etcd_priv.h"

#include <stdio.h>

#define LIST_PATH "/v3/cluster/member/list"

static int finish_member_call(struct stw_etcd_exchange *x, int r, enum stw_etcd_trouble *trouble,
                              struct stw_error *err)
{
    if (r != 0 && x->trouble == STW_ETCD_FINE)
        x->trouble = STW_ETCD_FAILED;
    *trouble = x->trouble;
    if (r != 0 && err)
        *err = x->err;
    stw_etcd_exchange_done(x);
    return r;
}

/* --- the list */

/* 3.4 always lists its local state.  After a linearizable read, that includes all changes made
 * before the read.  The header of the list has no revision; that of the read does. */
static void list_after_read(struct stw_etcd_exchange *x)
{
    uint64_t *revision = x->ctx;
    if (!stw_streq(x->path, STW_ETCD_READ_PATH) || !stw_etcd_read_proved(x))
        return;
    if (x->trouble == STW_ETCD_FINE &&
        stw_etcd_read_revision(stw_buf_str(&x->answer), x->answer.len, revision, &x->err) != 0) {
        x->trouble = STW_ETCD_FAILED;
        return;
    }
    x->again = true;
    x->path = LIST_PATH;
    x->body = "{\"linearizable\":true}";
}

int stw_etcd_member_list(struct stw_etcd *e, const struct stw_etcd_endpoint *at,
                         struct stw_etcd_members *ret, enum stw_etcd_trouble *trouble,
                         struct stw_error *err)
{
    uint64_t revision = 0;
    struct stw_etcd_exchange x = {.then = list_after_read, .ctx = &revision};
    int r = stw_etcd_ask(e, &x, at, STW_ETCD_READ_PATH, STW_ETCD_READ_BODY);
    if (r == 0)
        r = stw_etcd_read_members(stw_buf_str(&x.answer), x.answer.len, ret, &x.err);
    if (r == 0)
        ret->revision = revision;
    return finish_member_call(&x, r, trouble, err);
}

/* --- changes */

int stw_etcd_member_add(struct stw_etcd *e, const struct stw_etcd_endpoint *at,
                        const char *peer_url, uint64_t *ret_id, enum stw_etcd_trouble *trouble,
                        struct stw_error *err)
{
    struct stw_etcd_exchange x = {.change = true};
    stw_autobuf struct stw_buf body = STW_BUF_INIT(2 * STW_ETCD_URL_MAX);
    stw_buf_adds(&body, "{\"peerURLs\":[");
    stw_buf_json_strz(&body, peer_url);
    stw_buf_adds(&body, "],\"isLearner\":true}");
    int r = body.failed || strlen(peer_url) >= STW_ETCD_URL_MAX
                ? stw_etcd_refuse(&x, STW_ETCD_FAILED, STW_ERR_INVALID,
                                  "the peer URL is over %d bytes", STW_ETCD_URL_MAX)
                : stw_etcd_ask(e, &x, at, "/v3/cluster/member/add", body.data);
    if (r == 0)
        r = stw_etcd_read_added(stw_buf_str(&x.answer), x.answer.len, ret_id, &x.err);
    return finish_member_call(&x, r, trouble, err);
}

static int send_change_request(struct stw_etcd *e, const struct stw_etcd_endpoint *at,
                               const char *path, const char *key, uint64_t id,
                               enum stw_etcd_trouble *trouble, struct stw_error *err)
{
    struct stw_etcd_exchange x = {.change = true};
    char body[64];
    stw_format(body, sizeof(body), "{\"%s\":\"%llu\"}", key, (unsigned long long)id);
    return finish_member_call(&x, stw_etcd_ask(e, &x, at, path, body), trouble, err);
}

int stw_etcd_member_promote(struct stw_etcd *e, const struct stw_etcd_endpoint *at, uint64_t id,
                            enum stw_etcd_trouble *trouble, struct stw_error *err)
{
    return send_change_request(e, at, "/v3/cluster/member/promote", "ID", id, trouble, err);
}

int stw_etcd_member_remove(struct stw_etcd *e, const struct stw_etcd_endpoint *at, uint64_t id,
                           enum stw_etcd_trouble *trouble, struct stw_error *err)
{
    return send_change_request(e, at, "/v3/cluster/member/remove", "ID", id, trouble, err);
}

int stw_etcd_move_leader(struct stw_etcd *e, const struct stw_etcd_endpoint *leader, uint64_t to,
                         enum stw_etcd_trouble *trouble, struct stw_error *err)
{
    return send_change_request(e, leader, "/v3/maintenance/transfer-leadership", "targetID", to,
                               trouble, err);
}

int stw_etcd_downgrade(struct stw_etcd *e, const struct stw_etcd_endpoint *at, struct stw_semver to,
                       enum stw_etcd_trouble *trouble, struct stw_error *err)
{
    struct stw_etcd_exchange x = {.change = true};
    char body[64] = "{\"action\":\"CANCEL\"}";
    if (stw_semver_known(to))
        stw_format(body, sizeof(body), "{\"action\":\"ENABLE\",\"version\":\"%u.%u.0\"}", to.major,
                   to.minor);
    return finish_member_call(&x, stw_etcd_ask(e, &x, at, "/v3/maintenance/downgrade", body),
                              trouble, err);
}
