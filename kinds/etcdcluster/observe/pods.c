/* SPDX-License-Identifier: Apache-2.0
 *
 * What the cache says of the pods of a cluster: which were made from the wanted template, whether one
 * runs, and what the Services select. */
#include "kinds/etcdcluster/observe/pods.h"

#include "base/hex.h"
#include "base/util.h"
#include "kinds/etcdcluster/observe/watch.h"
#include "kinds/etcdcluster/run.h"

#define KEYS_MAX (16u << 20)
#define TEXT_MAX (64u << 10)

/* --- templates */

static bool has_consent(const struct ec *e)
{
    return stw_run_updates_templates(e->run) ||
           stw_template_has_consent(e->object.consent, stw_hash_parse(e->template_hash));
}

bool ec_is_outdated(const struct ec *e, const struct ec_pod_live *pod)
{
    return *pod->inputs && stw_streq(pod->inputs, e->input_hash) &&
           !stw_streq(pod->hash, e->template_hash) && !has_consent(e);
}

bool ec_has_template(const struct ec *e, const struct ec_pod_live *pod)
{
    return stw_streq(pod->hash, e->template_hash) || ec_is_outdated(e, pod);
}

bool ec_has_template_everywhere(struct ec *e)
{
    struct stw_informer *cache = stw_run_cache(e->run, &ec_watch_pods);
    for (size_t i = 0; i < e->was.member_count; i++) {
        stw_autobuf struct stw_buf text = STW_BUF_INIT(TEXT_MAX);
        struct ec_pod_live pod;
        char key[STW_KEY_LEN];
        stw_key_make(e->owner.ns, e->was.members[i].name, key);
        if (stw_informer_get(cache, key, &text, NULL) != 0 ||
            ec_pod_read(stw_buf_str(&text), text.len, &pod) != 0 || pod.going || !pod.ready ||
            !ec_has_template(e, &pod))
            return false;
    }
    return e->was.member_count > 0;
}

/* --- all pods */

void ec_cached_keys(const struct ec *e, struct stw_informer *cache, struct stw_buf *ret)
{
    stw_autobuf struct stw_buf index = STW_BUF_INIT(2 * STW_KEY_LEN);
    stw_buf_addf(&index, "cluster:%s", e->run->key);
    stw_informer_keys(cache, stw_buf_str(&index), ret);
}

static bool read_own_pod(const struct ec *e, const char *key, struct stw_informer *cache,
                         struct ec_pod_live *ret)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(TEXT_MAX);
    return stw_informer_get(cache, key, &text, NULL) == 0 &&
           ec_pod_read(stw_buf_str(&text), text.len, ret) == 0 &&
           stw_streq(ret->owner_uid, e->object.uid);
}

bool ec_has_running_pod(struct ec *e)
{
    struct stw_informer *cache = stw_run_cache(e->run, &ec_watch_pods);
    stw_autobuf struct stw_buf keys = STW_BUF_INIT(KEYS_MAX);
    struct ec_pod_live pod;
    size_t at = 0;
    ec_cached_keys(e, cache, &keys);
    for (const char *key; (key = stw_keys_next(&keys, &at));)
        if (read_own_pod(e, key, cache, &pod) && pod.ran && !pod.ended)
            return true;
    return false;
}

struct ec_endpoints ec_count_endpoints(struct ec *e)
{
    struct stw_informer *cache = stw_run_cache(e->run, &ec_watch_pods);
    stw_autobuf struct stw_buf keys = STW_BUF_INIT(KEYS_MAX);
    struct ec_endpoints ret = {0};
    struct ec_pod_live pod;
    size_t at = 0;
    ec_cached_keys(e, cache, &keys);
    for (const char *key; (key = stw_keys_next(&keys, &at));) {
        if (!read_own_pod(e, key, cache, &pod) || pod.going || pod.ended || !*pod.ip)
            continue;
        ret.members++;
        ret.ready_voters += pod.ready && pod.voter;
    }
    return ret;
}
