/* SPDX-License-Identifier: Apache-2.0 */
#include "etcd/release.h"

#include "base/util.h"

#include <assert.h>

/* The first version with the trait: in 3.4, and in 3.5 and later. */
static const struct {
    struct stw_semver since_34, since;
} traits[] = {
    [STW_ETCD_LEARNERS] = {{3, 4, 0}, {3, 5, 0}},
    [STW_ETCD_MAINTAINED] = {{3, 5, 0}, {3, 5, 0}},
    [STW_ETCD_SAFE_ALONE] = {{3, 4, 21}, {3, 5, 5}},
    [STW_ETCD_SAFE_DEFRAG] = {{3, 4, 0}, {3, 5, 6}},
    [STW_ETCD_LIVEZ] = {{3, 4, 29}, {3, 5, 11}},
    [STW_ETCD_FEATURE_GATES] = {{3, 6, 0}, {3, 6, 0}},
    [STW_ETCD_NO_EXPERIMENTS] = {{3, 7, 0}, {3, 7, 0}},
    [STW_ETCD_UTL] = {{3, 5, 0}, {3, 5, 0}},
    [STW_ETCD_BUMPS] = {{3, 5, 10}, {3, 5, 10}},
    [STW_ETCD_CLEAN_LOG] = {{3, 5, 0}, {3, 5, 0}},
    [STW_ETCD_CHECKS_LOG] = {{3, 6, 0}, {3, 6, 0}},
    [STW_ETCD_DOWNGRADES] = {{3, 6, 0}, {3, 6, 0}},
};
static_assert(STW_COUNT(traits) == STW_ETCD_TRAITS, "one row for each trait");

/* The name before, and from, the version that renamed the option.  3.6 accepts both names, 3.7 only
 * the new one. */
static const struct {
    struct stw_semver renamed;
    const char *before, *after;
} options[] = {
    [STW_ETCD_CORRUPT_CHECK] = {{3, 6, 0},
                                "--experimental-initial-corrupt-check=true",
                                "--feature-gates=InitialCorruptCheck=true"},
    [STW_ETCD_SKIP_CLIENT_SAN] = {{3, 6, 0},
                                  "--experimental-peer-skip-client-san-verification=true",
                                  "--peer-skip-client-san-verification=true"},
};
static_assert(STW_COUNT(options) == STW_ETCD_OPTIONS, "one row for each option");

static const struct {
    uint16_t minor; /* of 3.x */
    struct stw_etcd_step step;
} steps[] = {
    /* etcd#19557, etcd#20793 */
    {6,
     {{3, 5, 20}, {3, 5, 24}, "members that were promoted once may come back as learners in 3.6"}},
    /* etcd's guide "Upgrade etcd from v3.6 to v3.7" */
    {7, {{3, 6, 11}, {3, 6, 11}, NULL}},
};

bool stw_etcd_has(struct stw_semver v, enum stw_etcd_trait trait)
{
    const struct stw_semver next = {3, 5, 0};
    return !stw_semver_older(v, stw_semver_older(v, next) ? traits[trait].since_34
                                                          : traits[trait].since);
}

bool stw_etcd_corrupts(struct stw_semver v)
{
    return v.major == 3 && v.minor == 5 && v.patch <= 2;
}

const char *stw_etcd_option(struct stw_semver v, enum stw_etcd_option option)
{
    return stw_semver_older(v, options[option].renamed) ? options[option].before
                                                        : options[option].after;
}

struct stw_etcd_step stw_etcd_step_to(struct stw_semver to)
{
    for (size_t i = 0; i < STW_COUNT(steps); i++)
        if (to.major == 3 && to.minor == steps[i].minor)
            return steps[i].step;
    return (struct stw_etcd_step){0};
}
