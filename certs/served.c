/* SPDX-License-Identifier: Apache-2.0
 *
 * What is served, and whether it is valid. */
#include "base/log.h"
#include "base/thread.h"
#include "base/util.h"
#include "certs/issue.h"
#include "certs_priv.h"

#include <stdio.h>
#include <unistd.h>

void stw_certs_poke(struct stw_certs *c)
{
    uint64_t one = 1;
    /* It fails only when the counter is full: then the thread is already woken. */
    ssize_t n = write(c->wake, &one, sizeof(one));
    (void)n;
}

void stw_certs_set_problem(struct stw_certs *c, const char *text)
{
    STW_LOCKED(&c->lock);
    stw_format(c->problem, sizeof(c->problem), "%s", text);
}

int stw_certs_take(void *ctx, const char *cert_pem, const char *key_pem, struct stw_error *err)
{
    struct stw_certs *c = ctx;
    struct stw_cert_info info;
    char end[STW_TIME_LEN];
    if (stw_pair_check(cert_pem, key_pem, stw_wall_us(c->clock), err) != 0 ||
        stw_cert_info(cert_pem, &info, err) != 0 ||
        c->config.use(c->config.ctx, cert_pem, key_pem, err) != 0)
        return -1;
    pthread_mutex_lock(&c->lock);
    c->not_after_us = info.not_after_us;
    pthread_mutex_unlock(&c->lock);
    c->expired_said = false;
    stw_series_set(c->serving_end, (double)info.not_after_us / 1e6);
    stw_time_format(info.not_after_us, end);
    stw_log(STW_LOG_INFO, "serving certificate in use", STW_STR("serial", info.serial),
            STW_STR("notAfter", end));
    return 0;
}

static bool is_ready(struct stw_certs *c, char *why, size_t why_size)
{
    char when[STW_TIME_LEN];
    const char *problem = c->problem;
    if (c->not_after_us == 0) {
        stw_format(why, why_size, "no certificate yet%s%s", *problem ? ": " : "", problem);
        return false;
    }
    if (c->not_after_us <= stw_wall_us(c->clock)) {
        stw_time_format(c->not_after_us, when);
        stw_format(why, why_size, "the serving certificate expired at %s", when);
        return false;
    }
    stw_format(why, why_size, "%s", problem);
    return *problem == '\0';
}

bool stw_certs_ready(struct stw_certs *c, char *why, size_t why_size)
{
    STW_LOCKED(&c->lock);
    return is_ready(c, why, why ? why_size : 0); /* snprintf takes NULL with a size of 0 */
}
