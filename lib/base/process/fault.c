/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process/fault.h"

#ifdef STW_FAULT_POINTS
#include "base/util.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>

static void log_fault_point(int64_t number, const char *name)
{
    const char *path = getenv("STEWARD_FAULT_LOG");
    FILE *f = path ? fopen(path, "ae") : NULL;
    if (!f)
        return;
    (void)fprintf(f, "%lld %s\n", (long long)number, name);
    (void)fclose(f);
}

void stw_fault_point(const char *name)
{
    static _Atomic int64_t count;
    const char *text = getenv("STEWARD_FAULT_AT");
    int64_t at = 0, now = atomic_fetch_add(&count, 1) + 1;
    if (text)
        (void)stw_parse_int(text, 1, INT32_MAX, &at);
    log_fault_point(now, name);
    if (now == at)
        (void)raise(SIGKILL);
}

int64_t stw_day_s(void)
{
    const char *text = getenv("STEWARD_DAY_SECONDS");
    int64_t seconds = 86400;
    if (text)
        (void)stw_parse_int(text, 1, 86400, &seconds);
    return seconds;
}

const char *stw_fault_template(void)
{
    return getenv("STEWARD_TEMPLATE");
}
#endif
