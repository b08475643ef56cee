/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/field/semver.h"

#include "base/util.h"

#include <ctype.h>
#include <stdio.h>

/* Parses one number up to `end`, which is skipped. */
static int parse_version_number(const char **at, char end, uint16_t *ret)
{
    const char *c = *at;
    uint32_t n = 0;
    for (; isdigit((unsigned char)*c) && n <= UINT16_MAX; c++)
        n = n * 10 + (uint32_t)(*c - '0');
    if (c == *at || n > UINT16_MAX || *c != end || (**at == '0' && c - *at > 1))
        return -1;
    *ret = (uint16_t)n;
    *at = c + (end != '\0');
    return 0;
}

int stw_semver_parse(const char *text, struct stw_semver *ret)
{
    struct stw_semver v;
    if (*text == 'v')
        text++;
    if (parse_version_number(&text, '.', &v.major) != 0 ||
        parse_version_number(&text, '.', &v.minor) != 0 ||
        parse_version_number(&text, '\0', &v.patch) != 0)
        return -1;
    *ret = v;
    return 0;
}

int stw_semver_compare(struct stw_semver a, struct stw_semver b)
{
    if (a.major != b.major)
        return a.major < b.major ? -1 : 1;
    if (a.minor != b.minor)
        return a.minor < b.minor ? -1 : 1;
    return a.patch == b.patch ? 0 : a.patch < b.patch ? -1 : 1;
}

void stw_semver_text(struct stw_semver v, char out[STW_SEMVER_LEN])
{
    stw_format(out, STW_SEMVER_LEN, "%u.%u.%u", v.major, v.minor, v.patch);
}
