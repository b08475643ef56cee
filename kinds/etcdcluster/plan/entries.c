/* SPDX-License-Identifier: Apache-2.0
 *
 * The entries of the view, by name. */
#include "kinds/etcdcluster/plan/entries.h"

#include "base/backoff.h"
#include "base/util.h"
#include "kinds/etcdcluster/names.h"
#include "kinds/etcdcluster/run.h"

#include <assert.h>

size_t ec_index(const struct ec *e, const char *name)
{
    for (size_t i = 0; i < e->view.count; i++)
        if (stw_streq(e->view.members[i].name, name))
            return i;
    return EC_MEMBERS_MAX;
}

struct ec_member *ec_entry(struct ec *e, const char *name, struct ec_detail **ret)
{
    size_t i = ec_index(e, name);
    if (i == EC_MEMBERS_MAX) {
        if (e->view.count == EC_MEMBERS_MAX || strlen(name) >= EC_NAME_MAX)
            return NULL;
        i = e->view.count++;
        stw_format(e->view.members[i].name, EC_NAME_MAX, "%s", name);
        ec_peer_url(e, name, e->details[i].peer_url);
    }
    assert(i < e->view.count);
    *ret = &e->details[i];
    return &e->view.members[i];
}

void ec_fresh_name(const struct ec *e, char out[EC_NAME_MAX])
{
    static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";
    char suffix[11] = "";
    do {
        uint64_t bits = stw_random();
        for (size_t i = 0; i + 1 < sizeof(suffix); i++, bits /= sizeof(letters) - 1)
            suffix[i] = letters[bits % (sizeof(letters) - 1)];
        stw_format(out, EC_NAME_MAX, "%.52s-%s", e->owner.name, suffix);
    } while (ec_index(e, out) != EC_MEMBERS_MAX);
}
