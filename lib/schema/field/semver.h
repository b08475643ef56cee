/* SPDX-License-Identifier: Apache-2.0
 *
 * Versions of the form MAJOR.MINOR.PATCH. */
#ifndef STW_SCHEMA_SEMVER_H
#define STW_SCHEMA_SEMVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zero: unknown. */
struct stw_semver {
    uint16_t major, minor, patch;
};
#define STW_SEMVER_LEN 24

/* Exactly three numbers without leading zeros; a leading "v" is skipped.  -1: not a version. */
int stw_semver_parse(const char *text, struct stw_semver *ret);
int stw_semver_compare(struct stw_semver a, struct stw_semver b); /* < 0, 0, > 0 */
static inline bool stw_semver_older(struct stw_semver a, struct stw_semver b)
{
    return stw_semver_compare(a, b) < 0;
}
void stw_semver_text(struct stw_semver v, char out[STW_SEMVER_LEN]);
static inline bool stw_semver_known(struct stw_semver v)
{
    return v.major || v.minor || v.patch;
}

#endif
