/* SPDX-License-Identifier: Apache-2.0
 *
 * Responses of etcd's gateway.  The first byte selects the reader of the rest.  On failure its
 * result must be unchanged; on success it must be bounded, and text must be printable. */
#include "etcd/etcd_priv.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool fine)
{
    if (!fine)
        abort();
}

static bool untouched(const void *p, size_t len)
{
    const unsigned char *bytes = p;
    for (size_t i = 0; i < len; i++)
        if (bytes[i] != 0x55)
            return false;
    return true;
}

static void read_status(const char *text, size_t len)
{
    struct stw_etcd_health h;
    struct stw_error err = {0};
    memset(&h, 0x55, sizeof(h));
    if (stw_etcd_read_status(text, len, &h, &err) != 0)
        check(untouched(&h, sizeof(h)) && err.text[0]);
    else
        check(h.answers && h.cluster_id && h.member_id && h.db_size >= 0);
}

static void read_members(const char *text, size_t len)
{
    static struct stw_etcd_members m;
    struct stw_error err = {0};
    memset(&m, 0x55, sizeof(m));
    if (stw_etcd_read_members(text, len, &m, &err) != 0) {
        check(untouched(&m, sizeof(m)) && err.text[0]);
        return;
    }
    check(m.cluster_id && m.count > 0 && m.count <= STW_ETCD_MEMBERS_MAX);
    for (size_t i = 0; i < m.count; i++)
        check(m.all[i].id && memchr(m.all[i].name, 0, sizeof(m.all[i].name)) &&
              memchr(m.all[i].peer_url, 0, sizeof(m.all[i].peer_url)));
}

static void read_alarms(const char *text, size_t len)
{
    struct stw_etcd_alarms alarms;
    struct stw_error err = {0};
    memset(&alarms, 0x55, sizeof(alarms));
    if (stw_etcd_read_alarms(text, len, &alarms, &err) != 0)
        check(untouched(&alarms, sizeof(alarms)) && err.text[0]);
    else
        check(alarms.count <= STW_ETCD_MEMBERS_MAX);
}

static void read_numbers(const char *text, size_t len)
{
    uint64_t id = 0, revision = 0;
    check(stw_etcd_read_added(text, len, &id, NULL) == 0 ? id != 0 : id == 0);
    if (stw_etcd_read_revision(text, len, &revision, NULL) != 0)
        check(revision == 0);
}

static void read_token(const char *text, size_t len)
{
    char token[STW_ETCD_TOKEN_MAX];
    memset(token, 0x55, sizeof(token));
    if (stw_etcd_read_token(text, len, token, NULL) != 0)
        check(untouched(token, sizeof(token)));
    else
        check(memchr(token, 0, sizeof(token)) && token[0] && !strpbrk(token, "\r\n"));
}

static void read_refusal(const char *text, size_t len)
{
    static const int statuses[] = {200, 400, 404, 412, 503};
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        struct stw_etcd_refusal r;
        stw_etcd_refusal_read(statuses[i], text, len, &r);
        check(r.trouble != STW_ETCD_FINE && r.text[0] && memchr(r.text, 0, sizeof(r.text)));
        for (const char *p = r.text; *p; p++)
            check(*p >= ' ' && *p < 127);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const readers[])(const char *, size_t) = {
        read_status, read_members, read_alarms, read_numbers, read_token, read_refusal};
    if (size < 1 || size > 65536)
        return 0;
    readers[data[0] % (sizeof(readers) / sizeof(readers[0]))]((const char *)data + 1, size - 1);
    return 0;
}
