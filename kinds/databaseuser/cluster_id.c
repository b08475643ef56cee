/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds/databaseuser/cluster_id.h"

#include "base/json.h"
#include "base/thread.h"
#include "base/util.h"
#include "kube/resource.h"
#include "sql/core/mark.h"

#include <pthread.h>

struct dbu_cluster_id {
    pthread_mutex_t lock;
    char uid[STW_MARK_CLUSTER_LEN]; /* "": not read yet; never changes after that */
};

struct dbu_cluster_id *dbu_cluster_id_create(void)
{
    struct dbu_cluster_id *c = calloc(1, sizeof(*c));
    if (c && pthread_mutex_init(&c->lock, NULL) != 0)
        free(stw_take(c));
    return c;
}

void dbu_cluster_id_destroy(struct dbu_cluster_id *c)
{
    if (!c)
        return;
    pthread_mutex_destroy(&c->lock);
    free(c);
}

static int read_uid(struct stw_client *client, char ret[STW_MARK_CLUSTER_LEN],
                    struct stw_error *err)
{
    stw_autobuf struct stw_buf answer = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    stw_autojson struct stw_json_doc doc = {0};
    if (stw_kube_get(client, &stw_res_namespace, NULL, DBU_CLUSTER_NAMESPACE, &answer, err) != 0)
        return -1;
    if (stw_json_scan(&doc, stw_buf_str(&answer), answer.len, NULL) == 0 &&
        stw_json_strcpy(stw_json_path(stw_json_root(&doc), "metadata.uid"), ret,
                        STW_MARK_CLUSTER_LEN) == 0 &&
        *ret)
        return 0;
    *ret = '\0';
    return stw_fail(err, STW_ERR_UNAVAILABLE, "the answer of the API server has no metadata.uid");
}

int dbu_cluster_id_get(struct dbu_cluster_id *c, struct stw_client *client, const char **ret,
                       struct stw_error *err)
{
    STW_LOCKED(&c->lock);
    if (!*c->uid && read_uid(client, c->uid, err) != 0)
        return stw_error_wrap(err, "the UID of the namespace " DBU_CLUSTER_NAMESPACE
                                   ", which marks what belongs to this cluster, cannot be read, so "
                                   "that nothing is changed on the server (steward needs the right "
                                   "to get this namespace)");
    *ret = c->uid;
    return 0;
}

const char *dbu_cluster_id_known(struct dbu_cluster_id *c)
{
    STW_LOCKED(&c->lock);
    return *c->uid ? c->uid : NULL;
}
