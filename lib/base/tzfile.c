/* SPDX-License-Identifier: Apache-2.0 */
#include "base/tzfile.h"

#include "base/util.h"

#include <limits.h>
#include <stdio.h>

int stw_tz_read(const char *name, size_t max, char **ret, size_t *ret_len, struct stw_error *err)
{
    char path[PATH_MAX];
    const char *dir = getenv("TZDIR");
    if (!*name || *name == '/' || strstr(name, ".."))
        return stw_fail(err, STW_ERR_INVALID, "\"%s\" is not the name of a time zone", name);
    if (!dir || !*dir)
        dir = STW_TZ_DIR;
    if (stw_format_whole(path, sizeof(path), "%s/%s", dir, name) != 0)
        return stw_fail(err, STW_ERR_INVALID, "the name of the time zone is too long");
    return stw_read_file(path, max, ret, ret_len, err);
}
