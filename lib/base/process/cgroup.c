/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process/cgroup.h"

#include "base/util.h"

#include <limits.h>
#include <stdio.h>

#define NO_LIMIT (UINT64_C(1) << 60) /* v1 reports "no limit" as the largest number of pages */

static void take_least(const char *root, const char *group, const char *file, uint64_t *least)
{
    char path[PATH_MAX];
    stw_autofree char *text = NULL;
    int64_t value;
    if (stw_format_whole(path, sizeof(path), "%s%s/%s", root, group, file) != 0 ||
        stw_read_file(path, 4096, &text, NULL, NULL) != 0)
        return;
    text[strcspn(text, "\n")] = '\0';
    if (stw_parse_int(text, 1, INT64_MAX, &value) == 0 && (uint64_t)value < NO_LIMIT)
        *least = STW_MIN(*least, (uint64_t)value);
}

/* The group and its ancestors.  In a container the group is often mounted as the root: the paths in
 * /proc then do not exist, and the root has the limit. */
static void take_all(const char *root, char *group, const char *file, uint64_t *least)
{
    for (char *slash = group; slash; slash = strrchr(group, '/')) {
        take_least(root, group, file, least);
        char *end = strrchr(group, '/');
        if (!end)
            break;
        *end = '\0';
    }
    take_least(root, "", file, least);
}

/* "4:memory:/a/b" of v1, "0::/a/b" of v2. */
static void take_line(char *line, uint64_t *least)
{
    char *names = strchr(line, ':'), *group = names ? strchr(names + 1, ':') : NULL;
    if (!group)
        return;
    *group++ = '\0';
    names++;
    if (!*names) {
        take_all("/sys/fs/cgroup", group, "memory.max", least);
        return;
    }
    char *rest = NULL;
    for (char *one = strtok_r(names, ",", &rest); one; one = strtok_r(NULL, ",", &rest))
        if (stw_streq(one, "memory"))
            take_all("/sys/fs/cgroup/memory", group, "memory.limit_in_bytes", least);
}

uint64_t stw_cgroup_memory_limit(void)
{
    stw_autofree char *text = NULL;
    char *rest = NULL;
    uint64_t least = NO_LIMIT;
    if (stw_read_file("/proc/self/cgroup", 65536, &text, NULL, NULL) != 0)
        return 0;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        take_line(line, &least);
    return least == NO_LIMIT ? 0 : least;
}
