/* SPDX-License-Identifier: Apache-2.0
 *
 * A credentials file, and the names of snapshots.  Text for a header cannot end the header, and a
 * name that is accepted as ours is one that we would write. */
#include "base/util.h"
#include "kinds/etcdbackup/snapshot.h"
#include "store/credentials.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void printable(const char *text)
{
    for (; *text; text++)
        if (*text <= 0x20 || *text > 0x7e)
            abort();
}

static void credentials(const char *text, size_t len)
{
    struct stw_credentials c;
    struct stw_error err = {0};
    if (stw_credentials_parse(text, len, NULL, &c, &err) != 0) {
        if (!*err.text || *c.secret_key)
            abort();
        return;
    }
    if (!*c.access_key || !*c.secret_key)
        abort();
    printable(c.access_key);
    printable(c.secret_key);
    printable(c.session_token);
    stw_credentials_wipe(&c);
}

static void names(const char *key)
{
    struct eb_snapshot_name name;
    char again[STW_STORE_KEY_MAX + 1];
    if (strlen(key) > 200 || eb_snapshot_key_parse("db", key, &name) != 0 || !name.own ||
        name.revision > 999999999999)
        return;
    if (eb_snapshot_key("db", &name, again) != 0 ||
        (strlen(key) == strlen(again) && !stw_streq(key, again)))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stw_autofree char *text = strndup((const char *)data, size);
    credentials((const char *)data, size);
    if (text)
        names(text);
    return 0;
}
