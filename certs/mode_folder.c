/* SPDX-License-Identifier: Apache-2.0
 *
 * Folder mode on the certificate thread. */
#include "certs_priv.h"

static void update_ca_end_metric(struct stw_certs *c)
{
    if (c->folder.ca_not_after_us > 0)
        stw_series_set(c->ca_end, (double)c->folder.ca_not_after_us / 1e6);
}

/* The watch is started first: changes after the read are reported. */
static int folder_open(struct stw_certs *c, struct stw_error *err)
{
    stw_folder_init(&c->folder, c->config.folder, c->clock);
    c->folder.use = stw_certs_take;
    c->folder.ctx = c;
    c->folder.reads = c->reads;
    c->folder.errors = c->errors;
    stw_folder_watch(&c->folder);
    if (stw_folder_load(&c->folder, err) != 0) {
        stw_series_add(c->errors, 1);
        return -1;
    }
    update_ca_end_metric(c);
    return 0;
}

static uint64_t folder_step(struct stw_certs *c, bool woken)
{
    (void)woken;
    stw_notify_drain(&c->folder.notify);
    stw_folder_watch(&c->folder);
    uint64_t wait_ms = stw_folder_check(&c->folder);
    update_ca_end_metric(c);
    return wait_ms;
}

static void folder_close(struct stw_certs *c)
{
    stw_folder_done(&c->folder);
}

static int folder_fd(const struct stw_certs *c)
{
    return c->folder.notify.fd;
}

const struct stw_certs_mode stw_certs_folder_mode = {
    .open = folder_open,
    .step = folder_step,
    .close = folder_close,
    .fd = folder_fd,
};
