/* SPDX-License-Identifier: Apache-2.0
 *
 * Carries out a move.  Its intent is in the status by now.  steward may die after any act, so each
 * act can safely be repeated. */
#include "kinds/etcdcluster/act/act.h"

#include "base/log.h"
#include "base/process/fault.h"
#include "base/util.h"
#include "kinds/etcdcluster/act/claims.h"
#include "kinds/etcdcluster/act/pod.h"
#include "kinds/etcdcluster/labels.h"
#include "kinds/etcdcluster/maintenance.h"
#include "kinds/etcdcluster/names.h"
#include "kinds/etcdcluster/observe/ask.h"
#include "kinds/etcdcluster/observe/watch.h"
#include "kinds/etcdcluster/plan/entries.h"
#include "kinds/etcdcluster/run.h"
#include "kinds/etcdcluster/runtime.h"

#include <assert.h>
#include <stdio.h>

#define ANSWER_MAX (4u << 20)
/* Of the plugin PersistentVolumeClaimResize: plugin/pkg/admission/storage/persistentvolume/resize */
#define UNSUPPORTED "must support resize"

static void report_act(struct ec *e, const char *reason, const char *action, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

static void report_act(struct ec *e, const char *reason, const char *action, const char *fmt, ...)
{
    char note[512];
    va_list ap;
    va_start(ap, fmt);
    stw_vformat(note, sizeof(note), fmt, ap);
    va_end(ap);
    stw_object_event(e->run, &e->object, false, reason, action, "%s", note);
    stw_log(STW_LOG_INFO, "acted on an etcd cluster", STW_STR("what", reason),
            STW_STR("note", note));
}

/* --- Kubernetes */

/* 0 if the pod is gone: the cache will follow.  Else -1, with the error wrapped. */
static int patch_failed(struct ec *e, const char *what, const char *pod)
{
    if (stw_error_pass_over(-1, STW_ERR_NOT_FOUND, &e->err) == 0)
        return 0;
    return stw_error_wrap(&e->err, "cannot %s pod \"%s\"", what, pod);
}

static int fail_manifest(const struct stw_resource *r, struct stw_error *err)
{
    char what[100];
    stw_format(what, sizeof(what), "the manifest of %s", r->kind);
    return stw_tree_fail(what, err);
}

/* If the name exists already, it was created before and the cache lags: not an error. */
static int create_object(struct ec *e, const struct stw_watch *w, const json_t *object,
                         const struct stw_origin *origins)
{
    stw_autobuf struct stw_buf path = STW_BUF_INIT(4096), answer = STW_BUF_INIT(ANSWER_MAX);
    stw_autofree char *body = json_dumps(object, JSON_COMPACT);
    if (!body)
        return fail_manifest(w->resource, &e->err);
    stw_resource_path(w->resource, e->owner.ns, NULL, NULL, &path);
    stw_buf_addf(&path, "?fieldManager=%s", e->run->field_manager);
    struct stw_request request = {
        .method = "POST", .path = stw_buf_str(&path), .body = body, .body_len = strlen(body)};
    int rc = stw_client_do(e->run->client, &request, &answer, &e->err);
    stw_fault_point("create");
    if (rc == 0)
        stw_informer_saw(stw_run_cache(e->run, w), &answer, NULL);
    if (stw_error_pass_over(rc, STW_ERR_EXISTS, &e->err) == 0)
        return 0;
    stw_origin_name(origins, object, e->object.root, &e->err);
    return stw_error_wrap(&e->err, "cannot create %s \"%s\"", w->resource->kind, e->move.member);
}

static int create_claim(struct ec *e, size_t i)
{
    static const struct stw_origin origins[] = {
        {"spec", "spec.pod.persistentVolumeClaimSpec"},
        {"spec.resources.requests.storage", "spec.storage.size"},
        {"spec.storageClassName", "spec.storage.storageClassName"},
        {0},
    };
    (void)stw_tree_whole(NULL);
    json_auto_t *claim = stw_tree_whole(ec_claim_manifest(e, e->move.member));
    (void)i;
    return create_object(e, &ec_watch_claims, claim, origins);
}

static int create_pod(struct ec *e, size_t i)
{
    static const struct stw_origin origins[] = {
        {"spec.containers[etcd].image", "spec.repository"},
        {"spec.containers[etcd].env", "spec.pod.etcdEnv"},
        {"spec.containers[etcd].resources", "spec.pod.resources"},
        {"metadata", "spec.pod"},
        {"spec", "spec.pod"},
        {0},
    };
    (void)stw_tree_whole(NULL);
    json_auto_t *pod = stw_tree_whole(ec_pod_manifest(e, &e->move));
    (void)i;
    if (!stw_semver_known(e->move.version))
        return stw_fail(&e->err, STW_ERR_INTERNAL, "no version for pod \"%s\"", e->move.member);
    return create_object(e, &ec_watch_pods, pod, origins);
}

static int delete_object(struct ec *e, const struct stw_watch *w, const char *uid, const char *rv)
{
    int rc =
        stw_kube_delete(e->run->client, w->resource, e->owner.ns, e->move.member, uid, rv, &e->err);
    stw_fault_point("delete");
    if (stw_error_pass_over(rc, STW_ERR_NOT_FOUND, &e->err) == 0)
        return 0;
    return stw_error_wrap(&e->err, "cannot delete %s \"%s\"", w->resource->kind, e->move.member);
}

static int delete_pod(struct ec *e, size_t i)
{
    const struct ec_pod_live *pod = i == EC_MEMBERS_MAX ? NULL : &e->details[i].pod;
    if (!pod || !*pod->uid)
        return 0;
    return delete_object(e, &ec_watch_pods, pod->uid, pod->resource_version);
}

static int delete_claim(struct ec *e, size_t i)
{
    struct stw_error err = {0};
    const struct ec_claim_live *claim = i == EC_MEMBERS_MAX ? NULL : &e->details[i].claim;
    if (!claim || !*claim->uid)
        return 0;
    if (stw_kube_get(e->run->client, &stw_res_pod, e->owner.ns, e->move.member, NULL, &err) == 0)
        return stw_fail(&e->err, STW_ERR_CONFLICT, "pod \"%s\" is still there", e->move.member);
    if (err.code != STW_ERR_NOT_FOUND) {
        e->err = err;
        return -1;
    }
    return delete_object(e, &ec_watch_claims, claim->uid, claim->resource_version);
}

/* Not an error if the API server refuses it, as a quota or a plugin may: the condition Resizing says
 * so, and it is tried again after EC_VOLUME_RETRY_MS.  Members are checked as often as before. */
static int note_refusal(struct ec *e, const struct ec_claim_live *claim)
{
    struct ec_kept *kept = ec_runtime_get(e->runtime, e->run);
    if (!kept || (e->err.code != STW_ERR_FORBIDDEN && e->err.code != STW_ERR_INVALID))
        return stw_error_wrap(&e->err, "cannot expand PersistentVolumeClaim \"%s\"",
                              e->move.member);
    if (strstr(e->err.text, UNSUPPORTED)) { /* what steward may not read with --namespaces */
        kept->class.name = stw_hash_bytes(claim->class, strlen(claim->class));
        kept->class.until_ms = stw_now_ms(e->run->clock) + EC_VOLUME_RETRY_MS;
        kept->class.expands = false;
    }
    kept->refused.until_ms = stw_now_ms(e->run->clock) + EC_VOLUME_RETRY_MS;
    stw_format(kept->refused.text, sizeof(kept->refused.text), "%.190s", e->err.text);
    e->err = (struct stw_error){0};
    return 0;
}

/* Whether the volume of a member is being expanded, as the API server has it.  -1: e->err. */
static int check_growing(struct ec *e, const char *name, const char *wanted)
{
    stw_autobuf struct stw_buf answer = STW_BUF_INIT(ANSWER_MAX), text = STW_BUF_INIT(ANSWER_MAX);
    stw_autojson struct stw_json_doc doc = {0};
    struct ec_claim_live claim;
    int rc = stw_kube_get(e->run->client, &ec_res_claim, e->owner.ns, name, &answer, &e->err);
    if (rc != 0)
        return stw_error_pass_over(rc, STW_ERR_NOT_FOUND, &e->err);
    if (stw_json_scan(&doc, stw_buf_str(&answer), answer.len, &e->err) != 0)
        return -1;
    ec_watch_claims.project(e->run->op, stw_json_root(&doc), &text);
    return ec_claim_read(stw_buf_str(&text), text.len, &claim) == 0 &&
           ec_judge_volume(&claim, wanted) == EC_VOLUME_GROWS;
}

/* One that grows, and that the cache does not show yet, is waited for.  -1: e->err. */
static int check_no_other_grows(struct ec *e, const char *wanted)
{
    for (size_t i = 0; i < e->view.count; i++) {
        const struct ec_member *m = &e->view.members[i];
        if (!m->listed || !m->claim || stw_streq(m->name, e->move.member))
            continue;
        int grows = check_growing(e, m->name, wanted);
        if (grows < 0)
            return stw_error_wrap(&e->err, "cannot read PersistentVolumeClaim \"%s\"", m->name);
        if (grows)
            return stw_fail(&e->err, STW_ERR_CONFLICT, "the volume of \"%s\" is being expanded",
                            m->name);
    }
    return 0;
}

static int expand_claim(struct ec *e, size_t i)
{
    stw_autobuf struct stw_buf answer = STW_BUF_INIT(ANSWER_MAX);
    char size[64];
    if (i == EC_MEMBERS_MAX)
        return 0;
    const struct ec_claim_live *claim = &e->details[i].claim;
    ec_wanted_size(e, size);
    if (check_no_other_grows(e, size) != 0)
        return -1;
    json_auto_t *patch =
        json_pack("{s:{s:s,s:s},s:{s:{s:{s:s}}}}", "metadata", "uid", claim->uid, "resourceVersion",
                  claim->resource_version, "spec", "resources", "requests", "storage", size);
    int rc =
        stw_kube_merge_patch(e->run->client, STW_PLACE(&ec_res_claim, e->owner.ns, e->move.member),
                             patch, e->run->field_manager, &answer, &e->err);
    stw_fault_point("expand");
    if (rc != 0)
        return note_refusal(e, claim);
    stw_informer_saw(stw_run_cache(e->run, &ec_watch_claims), &answer, NULL);
    report_act(e, "ExpandingVolume", "Expand", "the volume of member %s is to grow from %s to %s",
               e->move.member, claim->requested, size);
    return 0;
}

/* One that is gone is not an error. */
static int patch_pod(struct ec *e, const char *name, const json_t *patch, const char *what,
                     const char *point)
{
    stw_autobuf struct stw_buf answer = STW_BUF_INIT(ANSWER_MAX);
    int rc = stw_kube_merge_patch(e->run->client, STW_PLACE(&stw_res_pod, e->owner.ns, name), patch,
                                  e->run->field_manager, &answer, &e->err);
    stw_fault_point(point);
    if (rc != 0)
        return patch_failed(e, what, name);
    stw_informer_saw(stw_run_cache(e->run, &ec_watch_pods), &answer, NULL);
    return 0;
}

static int guard_pod(struct ec *e, size_t i)
{
    stw_autobuf struct stw_buf initial = STW_BUF_INIT(4096);
    if (i == EC_MEMBERS_MAX)
        return 0;
    ec_initial_cluster(e, e->move.member, true, &initial);
    json_auto_t *patch =
        json_pack("{s:{s:s,s:{s:s,s:s}}}", "metadata", "uid", e->details[i].pod.uid, "annotations",
                  EC_INITIAL_CLUSTER, stw_buf_str(&initial), EC_INITIAL_STATE, "existing");
    return patch_pod(e, e->move.member, patch, "annotate", "guard");
}

/* Sets a label or an annotation of a member's pod, outside of a planned move; NULL removes it. */
static int mark_pod(struct ec *e, size_t i, const char *list, const char *key, const char *value,
                    const char *point)
{
    json_auto_t *patch =
        json_pack("{s:{s:s,s:{s:s?}}}", "metadata", "uid", e->details[i].pod.uid, list, key, value);
    if (stw_run_check_write(e->run, &e->err) != 0)
        return -1;
    return patch_pod(e, e->view.members[i].name, patch,
                     stw_streq(list, "labels") ? "label" : "annotate", point);
}

/* The member runs in another cluster: what clients write there is not in this one. */
static bool is_elsewhere(const struct ec *e, const struct ec_member *m)
{
    return e->view.cluster_id && m->cluster_id && m->cluster_id != e->view.cluster_id;
}

/* Members of another cluster lose the label.  A survivor gets none while it is forced: each start
 * of its container, also one after a crash, discards the end of its log. */
int ec_label_voters(struct ec *e)
{
    for (size_t i = 0; i < e->view.count; i++) {
        const struct ec_member *m = &e->view.members[i];
        const struct ec_detail *d = &e->details[i];
        bool elsewhere = is_elsewhere(e, m);
        bool votes = e->view.listed && m->listed && !m->learner && !elsewhere;
        if (!d->has_pod || d->pod.going || d->pod.forced)
            continue;
        if (((votes && !d->pod.voter) || (elsewhere && d->pod.voter)) &&
            mark_pod(e, i, "labels", EC_ROLE, votes ? EC_VOTER : NULL, "label") != 0)
            return -1;
    }
    return 0;
}

int ec_record_inputs(struct ec *e)
{
    for (size_t i = 0; i < e->view.count; i++) {
        const struct ec_detail *d = &e->details[i];
        if (d->has_pod && !d->pod.going && stw_streq(d->pod.hash, e->template_hash) &&
            !stw_streq(d->pod.inputs, e->input_hash) &&
            mark_pod(e, i, "annotations", EC_INPUTS, e->input_hash, "inputs") != 0)
            return -1;
    }
    return 0;
}

/* --- etcd */

/* What a failed call means.  WAIT: retried after a while; the strict check, for example, requires
 * every voter to be connected for 5 s. */
static const struct {
    enum stw_etcd_trouble trouble;
    enum { DONE, WAIT, UNSURE } meaning;
} meanings[] = {
    {STW_ETCD_EXISTS, DONE},
    {STW_ETCD_NOT_FOUND, DONE},
    {STW_ETCD_NOT_READY, WAIT},
    {STW_ETCD_UNHEALTHY, WAIT},
    {STW_ETCD_TOO_MANY_LEARNERS, WAIT},
    {STW_ETCD_UNREACHABLE, UNSURE},
    {STW_ETCD_NO_LEADER, UNSURE},
    {STW_ETCD_FAILED, UNSURE},
};

int ec_answer(struct ec *e, int rc, enum stw_etcd_trouble trouble, struct ec_kept *kept)
{
    for (size_t i = 0; rc != 0 && i < STW_COUNT(meanings); i++) {
        if (meanings[i].trouble != trouble)
            continue;
        if (meanings[i].meaning == UNSURE) {
            kept->unsure_until_ms = stw_now_ms(e->run->clock) + EC_UNSURE_MS;
            return -1;
        }
        e->err = (struct stw_error){0};
        return meanings[i].meaning == DONE;
    }
    return rc == 0 ? 1 : -1;
}

struct call {
    struct ec *e;
    struct stw_etcd_endpoint at;
    enum stw_etcd_trouble trouble;
    size_t index;
};

static int add_etcd_member(struct call *c)
{
    char url[STW_ETCD_URL_MAX];
    uint64_t id;
    ec_peer_url(c->e, c->e->move.member, url);
    return stw_etcd_member_add(c->e->etcd, &c->at, url, &id, &c->trouble, &c->e->err);
}

static int promote_member(struct call *c)
{
    return stw_etcd_member_promote(c->e->etcd, &c->at, c->e->move.id, &c->trouble, &c->e->err);
}

static int remove_member(struct call *c)
{
    return stw_etcd_member_remove(c->e->etcd, &c->at, c->e->move.id, &c->trouble, &c->e->err);
}

static int move_leader(struct call *c)
{
    char url[STW_ETCD_URL_MAX];
    struct stw_etcd_endpoint leader;
    size_t i = ec_index(c->e, c->e->move.member);
    if (i == EC_MEMBERS_MAX)
        return 0;
    ec_endpoint(c->e, i, url, &leader);
    return stw_etcd_move_leader(c->e->etcd, &leader, c->e->move.to_id, &c->trouble, &c->e->err);
}

static int send_downgrade(struct call *c)
{
    return stw_etcd_downgrade(c->e->etcd, &c->at, c->e->move.version, &c->trouble, &c->e->err);
}

static int disarm_alarm(struct call *c)
{
    return stw_etcd_alarm_disarm(c->e->etcd, &c->at, c->e->move.id, STW_ETCD_ALARM_NOSPACE,
                                 &c->trouble, &c->e->err);
}

/* Sent to the member itself. */
static int defragment_member(struct call *c)
{
    char url[STW_ETCD_URL_MAX];
    struct stw_etcd_endpoint member;
    size_t i = ec_index(c->e, c->e->move.member);
    if (i == EC_MEMBERS_MAX)
        return 0;
    ec_endpoint(c->e, i, url, &member);
    return stw_etcd_defragment(c->e->etcd, &member, &c->trouble, &c->e->err);
}

static int compact_history(struct call *c)
{
    return stw_etcd_compact(c->e->etcd, &c->at, c->e->state.pass.compact_to, &c->trouble,
                            &c->e->err);
}

/* The member to send the call to; for a removal, one other than the member to remove. */
static const struct ec_detail *contact_for(const struct ec *e, size_t *ret_index)
{
    const struct ec_detail *any = ec_contact(e, ret_index);
    for (size_t i = 0; any && e->move.act == EC_MEMBER_REMOVE && i < e->view.count; i++) {
        const struct ec_member *m = &e->view.members[i];
        if (m->healthy && !m->learner && m->id != e->move.id && e->details[i].health.linearizable) {
            *ret_index = i;
            return &e->details[i];
        }
    }
    return any;
}

static int call_etcd(struct ec *e, int (*fn)(struct call *), uint64_t *ret_again_ms)
{
    struct call c = {.e = e, .trouble = STW_ETCD_FINE};
    struct ec_kept *kept = ec_runtime_get(e->runtime, e->run);
    char url[STW_ETCD_URL_MAX];
    if (!kept || !contact_for(e, &c.index))
        return stw_fail(&e->err, STW_ERR_UNAVAILABLE, "no member can be asked");
    ec_endpoint(e, c.index, url, &c.at);
    int rc = fn(&c);
    stw_fault_point("etcd");
    if (e->move.act == EC_DISARM)
        ec_note_disarmed(e, kept);
    if (e->move.intent.kind == EC_DEFRAGMENT || e->move.intent.kind == EC_COMPACT) {
        ec_answer_upkeep(e, rc, c.trouble, kept);
        return 0;
    }
    int answer = ec_answer(e, rc, c.trouble, kept);
    if (answer < 0)
        return stw_error_wrap(&e->err, "etcd");
    bool shows_later = e->move.act == EC_DOWNGRADE; /* with the next check of its versions */
    *ret_again_ms = answer && !shows_later ? 0 : EC_SOON_MS;
    e->acted = answer;
    return 0;
}

static void tell_change(struct ec *e)
{
    const char *m = e->move.member;
    switch (e->move.act) {
    case EC_MEMBER_ADD:
        report_act(e, "MemberAdded", "AddMember", "added member %s as a learner", m);
        break;
    case EC_MEMBER_PROMOTE:
        report_act(e, "MemberPromoted", "PromoteMember", "member %s votes now", m);
        break;
    case EC_MEMBER_REMOVE:
        report_act(e, "MemberRemoved", "RemoveMember", "removed member %s (%llx)", m,
                   (unsigned long long)e->move.id);
        break;
    case EC_MOVE_LEADER:
        report_act(e, "LeaderMoved", "MoveLeader", "moving leadership from %s to %s", m,
                   e->move.to);
        break;
    case EC_DOWNGRADE:
        if (stw_semver_known(e->move.version))
            report_act(e, "DowngradeEnabled", "Downgrade", "etcd prepares its data for %u.%u",
                       e->move.version.major, e->move.version.minor);
        else
            report_act(e, "DowngradeCancelled", "Downgrade",
                       "etcd stays at the version that it has");
        break;
    case EC_DISARM:
        report_act(e, "AlarmDisarmed", "Disarm",
                   "there is space again: disarmed NOSPACE of member %llx",
                   (unsigned long long)e->move.id);
        break;
    default:
        break;
    }
}

/* --- the table of acts */

static const struct {
    int (*kube)(struct ec *e, size_t index);
    int (*etcd)(struct call *c);
} acts[] = {
    [EC_CREATE_CLAIM] = {.kube = create_claim},
    [EC_CREATE_POD] = {.kube = create_pod},
    [EC_DELETE_POD] = {.kube = delete_pod},
    [EC_DELETE_CLAIM] = {.kube = delete_claim},
    [EC_EXPAND_CLAIM] = {.kube = expand_claim},
    [EC_GUARD] = {.kube = guard_pod},
    [EC_MEMBER_ADD] = {.etcd = add_etcd_member},
    [EC_MEMBER_PROMOTE] = {.etcd = promote_member},
    [EC_MEMBER_REMOVE] = {.etcd = remove_member},
    [EC_MOVE_LEADER] = {.etcd = move_leader},
    [EC_MEMBER_DEFRAGMENT] = {.etcd = defragment_member},
    [EC_COMPACT_HISTORY] = {.etcd = compact_history},
    [EC_DOWNGRADE] = {.etcd = send_downgrade},
    [EC_DISARM] = {.etcd = disarm_alarm},
};
static_assert(STW_COUNT(acts) == EC_FORCE_NEXT, "later acts only write the status");

int ec_act(struct ec *e, uint64_t *ret_again_ms)
{
    *ret_again_ms = 0;
    e->err = (struct stw_error){0};
    if ((size_t)e->move.act >= STW_COUNT(acts))
        return 0;
    if (stw_run_check_write(e->run, &e->err) != 0)
        return -1;
    if (acts[e->move.act].kube) {
        e->acted = true;
        return acts[e->move.act].kube(e, ec_index(e, e->move.member));
    }
    if (!acts[e->move.act].etcd)
        return 0;
    int rc = call_etcd(e, acts[e->move.act].etcd, ret_again_ms);
    if (rc == 0 && e->acted)
        tell_change(e);
    return rc;
}
