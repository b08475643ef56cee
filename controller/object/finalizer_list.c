/* SPDX-License-Identifier: Apache-2.0
 *
 * What the list of finalizers of an object says. */
#include "base/util.h"
#include "controller/finalizer.h"
#include "controller/object/finalizer_priv.h"
#include "controller/packed.h"

#include <string.h>

#define TEXT_MAX (8u << 20)

struct stw_json stw_finalizer_list(const struct stw_object *o)
{
    return stw_json_path(o->root, "metadata.finalizers");
}

bool stw_finalizer_has(const struct stw_object *o, const char *finalizer)
{
    struct stw_json key, one;
    stw_json_foreach (stw_finalizer_list(o), key, one)
        if (stw_json_is(one, finalizer))
            return true;
    return false;
}

bool stw_finalizer_overtaken(const char *text, const char *finalizer)
{
    stw_autobuf struct stw_buf unpacked = STW_BUF_INIT(TEXT_MAX);
    stw_autojson struct stw_json_doc doc = {.trusted = true};
    if (stw_unpack_scan(text, strlen(text), &unpacked, &doc) != 0)
        return false;
    const struct stw_object o = {.root = stw_json_root(&doc)};
    return stw_finalizer_has(&o, finalizer) &&
           !stw_json_there(stw_json_path(o.root, "metadata.deletionTimestamp"));
}

bool stw_finalizer_has_others(const struct stw_object *o, const char *finalizer)
{
    struct stw_json key, one;
    stw_json_foreach (stw_finalizer_list(o), key, one)
        if (!stw_json_is(one, finalizer))
            return true;
    return false;
}
