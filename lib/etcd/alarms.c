/* SPDX-License-Identifier: Apache-2.0
 *
 * Alarms: a member that reached its quota, or found its data corrupt, raises one for the cluster.
 */
#include "base/util.h"
#include "etcd/etcd_priv.h"

#include <stdio.h>

#define ALARM_PATH "/v3/maintenance/alarm"

static int send_alarm_request(struct stw_etcd *e, const struct stw_etcd_endpoint *at,
                              const char *body, struct stw_etcd_alarms *ret,
                              enum stw_etcd_trouble *trouble, struct stw_error *err)
{
    struct stw_etcd_exchange x = {0};
    int r = stw_etcd_ask(e, &x, at, ALARM_PATH, body);
    if (r == 0 && ret &&
        stw_etcd_read_alarms(stw_buf_str(&x.answer), x.answer.len, ret, &x.err) != 0) {
        x.trouble = STW_ETCD_FAILED;
        r = -1;
    }
    *trouble = x.trouble;
    if (r != 0 && err)
        *err = x.err;
    stw_etcd_exchange_done(&x);
    return r;
}

int stw_etcd_alarms(struct stw_etcd *e, const struct stw_etcd_endpoint *at,
                    struct stw_etcd_alarms *ret, enum stw_etcd_trouble *trouble,
                    struct stw_error *err)
{
    return send_alarm_request(e, at, "{\"action\":\"GET\"}", ret, trouble, err);
}

int stw_etcd_alarm_disarm(struct stw_etcd *e, const struct stw_etcd_endpoint *at,
                          uint64_t member_id, unsigned alarm, enum stw_etcd_trouble *trouble,
                          struct stw_error *err)
{
    char body[128];
    stw_format(
        body, sizeof(body), "{\"action\":\"DEACTIVATE\",\"memberID\":\"%llu\",\"alarm\":\"%s\"}",
        (unsigned long long)member_id, alarm == STW_ETCD_ALARM_CORRUPT ? "CORRUPT" : "NOSPACE");
    return send_alarm_request(e, at, body, NULL, trouble, err);
}
