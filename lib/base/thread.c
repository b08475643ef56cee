/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"

#include <assert.h>
#include <signal.h>
#include <string.h>

int stw_thread_start(pthread_t *ret, const char *name, size_t stack_bytes, void *(*run)(void *),
                     void *ctx, struct stw_error *err)
{
    pthread_attr_t attr;
    sigset_t all, before;
    int r = 0;
    assert(ret && name && run);
    (void)pthread_attr_init(&attr); /* glibc's cannot fail */
    if (stack_bytes > 0)
        r = pthread_attr_setstacksize(&attr, stack_bytes);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    if (r == 0)
        r = pthread_create(ret, &attr, run, ctx);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attr);
    if (r != 0)
        return stw_fail(err, STW_ERR_INTERNAL, "cannot start the thread \"%s\": %s", name,
                        strerrordesc_np(r));
    (void)pthread_setname_np(*ret, name);
    return 0;
}
