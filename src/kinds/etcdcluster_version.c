/* SPDX-License-Identifier: Apache-2.0
 *
 * Which version of etcd may be asked for, and which may follow which. */
#include "base/util.h"
#include "kinds/etcdcluster_priv.h"

static const struct stw_semver first_supported = {3, 1, 0};
static const struct stw_semver first_with_learners = {3, 4, 0};
static const struct stw_semver first_maintained = {3, 5, 0};
/* Of 3.5: until then a lone member could lose writes that it had acknowledged (etcd#14370). */
static const struct stw_semver first_safe_alone = {3, 5, 5};
static const struct stw_semver first_safe_alone_of_34 = {3, 4, 21};
/* Members that were promoted come back as learners when 3.6 follows anything before (etcd#19557).
 */
static const struct stw_semver last_stop_before_36 = {3, 5, 20};
static const struct stw_semver best_stop_before_36 = {3, 5, 24}; /* etcd#20793 */

static bool before(struct stw_semver a, struct stw_semver b)
{
    return stw_semver_compare(a, b) < 0;
}

static bool same_minor(struct stw_semver a, struct stw_semver b)
{
    return a.major == b.major && a.minor == b.minor;
}

const char *stw_ec_check_version_text(const char *text)
{
    struct stw_semver v;
    if (stw_semver_parse(text, &v) != 0)
        return "must be a version like 3.5.21";
    if (before(v, first_supported))
        return "versions before 3.1 are not supported";
    if (v.major == 3 && v.minor == 5 && v.patch <= 2) /* etcd#13766 */
        return "has a known data corruption bug";
    return NULL;
}

int stw_etcd_upgrade_check(struct stw_semver from, struct stw_semver to, struct stw_error *err)
{
    char text[STW_SEMVER_LEN];
    if (before(to, from)) {
        stw_semver_text(from, text);
        return stw_fail(err, STW_ERR_INVALID, "downgrade from %s is not supported", text);
    }
    if (to.major != from.major || to.minor > from.minor + 1)
        return stw_fail(err, STW_ERR_INVALID, "upgrade one minor at a time: next is %u.%u",
                        from.major, from.minor + 1U);
    if (to.major == 3 && to.minor == 6 && from.minor == 5 && before(from, last_stop_before_36)) {
        stw_semver_text(last_stop_before_36, text);
        return stw_fail(err, STW_ERR_INVALID, "upgrade to %s or newer first", text);
    }
    return 0;
}

static struct stw_semver version_of(struct stw_json v)
{
    struct stw_semver ret = {0};
    char text[STW_SEMVER_LEN];
    if (stw_json_strcpy(v, text, sizeof(text)) == 0)
        (void)stw_semver_parse(text, &ret);
    return ret;
}

/* Some member runs what the upgrade is to. */
static bool has_moved(struct stw_json status, struct stw_semver current)
{
    struct stw_json key, member;
    stw_json_foreach (stw_json_get(status, "memberList"), key, member)
        if (before(current, version_of(stw_json_get(member, "version"))))
            return true;
    return false;
}

/* While an upgrade runs: on to a later patch of the same, or back as long as nobody has moved. */
static bool may_turn(struct stw_json status, struct stw_semver current, struct stw_semver target,
                     struct stw_semver wanted)
{
    bool moved = has_moved(status, current);
    if (stw_semver_compare(wanted, current) == 0)
        return !moved;
    return same_minor(wanted, target) && before(current, wanted) &&
           (!moved || !before(wanted, target));
}

static void advise_on_step(const struct stw_ec_scene *s, struct stw_semver from,
                           struct stw_semver to)
{
    if (to.minor == 6 && from.minor == 5 && before(from, best_stop_before_36))
        stw_findings_warn(s->f, "upgrade to 3.5.24 or newer first: members that were promoted once "
                                "may come back as learners in 3.6");
}

static void check_step(const struct stw_ec_scene *s, struct stw_semver wanted)
{
    struct stw_semver old = {0}, current = version_of(stw_json_get(s->status, "currentVersion"));
    struct stw_semver target = version_of(stw_json_get(s->status, "targetVersion"));
    struct stw_error err = {0};
    char text[STW_SEMVER_LEN];
    if (!s->old->version || stw_semver_parse(s->old->version, &old) != 0 ||
        stw_semver_compare(old, wanted) == 0)
        return;
    struct stw_semver from = stw_semver_known(current) ? current : old;
    bool upgrading = stw_semver_known(current) && stw_semver_known(target) &&
                     stw_semver_compare(current, target) != 0;
    if (upgrading && stw_semver_compare(wanted, target) != 0 &&
        !may_turn(s->status, current, target, wanted)) {
        stw_semver_text(target, text);
        stw_ec_refuse_text(s, "version", s->now->version, "upgrade to %s is still running", text);
    } else if (stw_etcd_upgrade_check(from, wanted, &err) != 0) {
        stw_ec_refuse_text(s, "version", s->now->version, "%s", err.text);
    } else {
        advise_on_step(s, from, wanted);
    }
    if (s->old->size != s->now->size)
        stw_ec_forbid(s, "version", "change size and version in separate steps");
}

static void advise(const struct stw_ec_scene *s, struct stw_semver v)
{
    bool safe_alone = !before(v, v.minor == 4 ? first_safe_alone_of_34 : first_safe_alone);
    if (before(v, first_with_learners))
        stw_findings_warn(s->f, "versions before 3.4 have no learners: a new member counts for the "
                                "quorum before it has the data");
    if (before(v, first_maintained))
        stw_findings_warn(s->f, "etcd %u.%u is out of support", v.major, v.minor);
    if (s->now->size == 1 && !safe_alone)
        stw_findings_warn(s->f, "a single member of a version before 3.5.5 can lose writes that it "
                                "has acknowledged");
}

void stw_ec_check_version(const struct stw_ec_scene *s)
{
    struct stw_semver v;
    if (!s->now->version || stw_semver_parse(s->now->version, &v) != 0)
        return;                                                     /* the table has said so */
    if (s->old && stw_json_there(stw_json_get(s->json, "version"))) /* else it stays as it is */
        check_step(s, v);
    if (!stw_ec_check_version_text(s->now->version))
        advise(s, v);
}
