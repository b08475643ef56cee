/* SPDX-License-Identifier: Apache-2.0 */
#include "sql/target/library.h"

#include "base/thread.h"
#include "base/util.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

static int find_functions(struct stw_client_library *l, void *handle, struct stw_error *err)
{
    for (size_t i = 0; i < l->count; i++) {
        void *found = dlsym(handle, l->names[i]);
        if (!found)
            return stw_fail(err, STW_ERR_INVALID,
                            "the library %s has no function %s: install a newer %s", l->file,
                            l->names[i], l->package);
        memcpy((char *)l->functions + i * sizeof(found), &found, sizeof(found));
    }
    return 0;
}

/* The library is never unloaded: what it registers elsewhere (thread exit, OpenSSL) cannot be
 * undone. */
static int load_shared_library(struct stw_client_library *l, struct stw_error *err)
{
    void *handle = dlopen(l->file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!handle)
        return stw_fail(err, STW_ERR_INVALID,
                        "the library %s cannot be loaded (%s): install the package %s", l->file,
                        dlerror(), l->package);
    return find_functions(l, handle, err);
}

int stw_library_load(struct stw_client_library *l, struct stw_error *err)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    STW_LOCKED(&lock);
    if (!l->loaded)
        l->loaded = load_shared_library(l, err) == 0;
    bool loaded = l->loaded;
    return loaded ? 0 : -1;
}
