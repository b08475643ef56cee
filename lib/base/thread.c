/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"

#include <assert.h>
#include <string.h>
#include <sys/prctl.h>

void stw_thread_block_signals(sigset_t *ret_before)
{
    static const int crashes[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    sigset_t set;
    (void)sigfillset(&set);
    for (size_t i = 0; i < STW_COUNT(crashes); i++)
        (void)sigdelset(&set, crashes[i]);
    (void)pthread_sigmask(SIG_SETMASK, &set, ret_before);
}

int stw_thread_start(pthread_t *ret, const char *name, size_t stack_bytes, void *(*run)(void *),
                     void *ctx, struct stw_error *err)
{
    char own[16] = "";
    pthread_attr_t attr;
    sigset_t before;
    int r = 0;
    assert(ret && name && run);
    (void)pthread_attr_init(&attr); /* glibc's cannot fail */
    if (stack_bytes > 0)
        r = pthread_attr_setstacksize(&attr, stack_bytes);
    stw_thread_block_signals(&before);
    /* A thread begins with the name of the one that starts it.  pthread_setname_np writes a file in
     * /proc, which a confined process may not. */
    (void)prctl(PR_GET_NAME, own);
    (void)prctl(PR_SET_NAME, name);
    if (r == 0)
        r = pthread_create(ret, &attr, run, ctx);
    (void)prctl(PR_SET_NAME, own);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attr);
    if (r != 0)
        return stw_fail(err, STW_ERR_INTERNAL, "cannot start the thread \"%s\": %s", name,
                        strerrordesc_np(r));
    return 0;
}
