/* SPDX-License-Identifier: Apache-2.0
 *
 * Which versions of etcd are accepted, and which version may follow which. */
#include "base/util.h"
#include "kinds/etcdcluster/spec/rules.h"

static const struct stw_semver first_supported = {3, 1, 0};

static bool same_minor(struct stw_semver a, struct stw_semver b)
{
    return a.major == b.major && a.minor == b.minor;
}

/* "3.7.0-rc.1", "3.7.0+local" */
static bool is_prerelease(const char *text)
{
    char release[STW_SEMVER_LEN];
    struct stw_semver v;
    size_t len = strcspn(text, "-+");
    if (!text[len] || len >= sizeof(release))
        return false;
    memcpy(release, text, len);
    release[len] = '\0';
    return stw_semver_parse(release, &v) == 0;
}

static bool is_version(struct stw_json text)
{
    char copy[STW_SEMVER_LEN + 1]; /* "v" */
    struct stw_semver v;
    return stw_json_strcpy(text, copy, sizeof(copy)) == 0 && stw_semver_parse(copy, &v) == 0;
}

struct stw_json ec_version_of_status(struct stw_json status)
{
    struct stw_json target = stw_json_get(status, "targetVersion");
    struct stw_json current = stw_json_get(status, "currentVersion");
    return is_version(target) ? target : is_version(current) ? current : STW_JSON_NONE;
}

const char *ec_check_version_text(const char *text)
{
    struct stw_semver v;
    if (stw_semver_parse(text, &v) != 0)
        return is_prerelease(text) ? "must be a release such as " STW_ETCD_VERSION
                                     ", not a pre-release or a build"
                                   : "must be a version like " STW_ETCD_VERSION;
    if (stw_semver_older(v, first_supported))
        return EC_TOO_OLD;
    return stw_etcd_corrupts(v) ? EC_CORRUPTS : NULL;
}

/* etcd's guides "Downgrade etcd from v3.6 to v3.5" and "... from v3.7 to v3.6". */
static int check_downgrade(struct stw_semver from, struct stw_semver to, struct stw_error *err)
{
    char text[STW_SEMVER_LEN];
    struct stw_semver least = stw_etcd_step_to(from).least;
    if (same_minor(from, to) || !stw_etcd_has(from, STW_ETCD_DOWNGRADES) ||
        to.major != from.major) {
        stw_semver_text(from, text);
        return stw_fail(err, STW_ERR_INVALID, "downgrade from %s is not supported", text);
    }
    if (to.minor + 1 < from.minor)
        return stw_fail(err, STW_ERR_INVALID, EC_DOWNGRADE_STEP ": next is %u.%u", from.major,
                        from.minor - 1U);
    if (!stw_semver_older(to, least))
        return 0;
    stw_semver_text(least, text);
    return stw_fail(err, STW_ERR_INVALID, "downgrade to %s or newer", text);
}

int ec_step_check(struct stw_semver from, struct stw_semver to, struct stw_error *err)
{
    char text[STW_SEMVER_LEN];
    if (stw_semver_older(to, from))
        return check_downgrade(from, to, err);
    if (to.major != from.major || to.minor > from.minor + 1)
        return stw_fail(err, STW_ERR_INVALID, EC_UPGRADE_STEP ": next is %u.%u", from.major,
                        from.minor + 1U);
    struct stw_semver least = stw_etcd_step_to(to).least;
    if (to.minor > from.minor && stw_semver_older(from, least)) {
        stw_semver_text(least, text);
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

/* Whether some member already runs the new version. */
static bool has_moved(struct stw_json status, struct stw_semver current)
{
    struct stw_json key, member;
    stw_json_foreach (stw_json_get(status, "memberList"), key, member)
        if (stw_semver_older(current, version_of(stw_json_get(member, "version"))))
            return true;
    return false;
}

/* While an upgrade runs: on to a later patch of the same minor, or back as long as no member has
 * moved.  While a downgrade runs: on to a later patch of the same minor, or back at any time. */
static bool may_turn(struct stw_json status, struct stw_semver current, struct stw_semver target,
                     struct stw_semver wanted)
{
    bool moved = has_moved(status, current);
    if (stw_semver_older(target, current))
        return stw_semver_compare(wanted, current) == 0 ||
               (same_minor(wanted, target) && !stw_semver_older(wanted, target));
    if (stw_semver_compare(wanted, current) == 0)
        return !moved;
    return same_minor(wanted, target) && stw_semver_older(current, wanted) &&
           (!moved || !stw_semver_older(wanted, target));
}

static void advise_on_step(const struct ec_scene *s, struct stw_semver from, struct stw_semver to)
{
    struct stw_etcd_step step = stw_etcd_step_to(to);
    char text[STW_SEMVER_LEN];
    if (stw_semver_older(to, from)) {
        stw_findings_warn(s->f, "etcd drops data that only %u.%u supports; take a backup first",
                          from.major, from.minor);
        return;
    }
    if (to.minor == from.minor || !stw_semver_older(from, step.best) || !step.why)
        return;
    stw_semver_text(step.best, text);
    stw_findings_warn(s->f, "upgrade to %s or newer first: %s", text, step.why);
}

/* Without a running version there is no data if no cluster is made of the old version, or if no
 * member has run, such as one whose image does not exist: any version may follow. */
static bool never_ran(struct stw_json status, struct stw_semver current, struct stw_semver old)
{
    if (stw_semver_known(current))
        return false;
    return !stw_etcd_has(old, STW_ETCD_LEARNERS) ||
           (stw_json_bool(stw_json_get(status, "neverRan"), false) &&
            !stw_json_there(stw_json_get(status, "clusterID")));
}

static void check_step(const struct ec_scene *s, struct stw_semver wanted)
{
    struct stw_semver old = {0}, current = version_of(stw_json_get(s->status, "currentVersion"));
    struct stw_semver target = version_of(stw_json_get(s->status, "targetVersion"));
    struct stw_error err = {0};
    char text[STW_SEMVER_LEN];
    if (!s->old->version || stw_semver_parse(s->old->version, &old) != 0 ||
        stw_semver_compare(old, wanted) == 0 || never_ran(s->status, current, old))
        return;
    struct stw_semver from = stw_semver_known(current) ? current : old;
    bool upgrading = stw_semver_known(current) && stw_semver_known(target) &&
                     stw_semver_compare(current, target) != 0;
    if (upgrading && stw_semver_compare(wanted, target) != 0 &&
        !may_turn(s->status, current, target, wanted)) {
        stw_semver_text(target, text);
        ec_refuse_text(s, "version", s->now->version, "%s to %s is still running",
                       stw_semver_older(target, current) ? "downgrade" : "upgrade", text);
    } else if (ec_step_check(from, wanted, &err) != 0) {
        ec_refuse_text(s, "version", s->now->version, "%s", err.text);
    } else {
        advise_on_step(s, from, wanted);
    }
    if (s->old->size != s->now->size)
        ec_forbid(s, "version", EC_SEPARATE_STEPS);
}

static void advise_on_version(const struct ec_scene *s, struct stw_semver v)
{
    struct stw_semver tested;
    if (!stw_etcd_has(v, STW_ETCD_LEARNERS))
        stw_findings_warn(s->f,
                          "no new cluster is made of a version before 3.4.0: members are added "
                          "as learners, which it does not have");
    if (!stw_etcd_has(v, STW_ETCD_MAINTAINED))
        stw_findings_warn(s->f, "etcd %u.%u is out of support", v.major, v.minor);
    if (s->now->size == 1 && !stw_etcd_has(v, STW_ETCD_SAFE_ALONE))
        stw_findings_warn(s->f, "a single member of a version before 3.5.5 can lose writes that it "
                                "has acknowledged");
    if (stw_semver_parse(STW_ETCD_TESTED, &tested) == 0 && stw_semver_older(tested, v))
        stw_findings_warn(s->f,
                          "etcd %u.%u.%u is newer than " STW_ETCD_TESTED
                          ", the newest version that this steward was tested with",
                          v.major, v.minor, v.patch);
}

void ec_check_version(const struct ec_scene *s)
{
    struct stw_semver v;
    if (!s->now->version || stw_semver_parse(s->now->version, &v) != 0)
        return;                                                     /* reported by the table */
    if (s->old && stw_json_there(stw_json_get(s->json, "version"))) /* else it stays unchanged */
        check_step(s, v);
    if (!ec_check_version_text(s->now->version))
        advise_on_version(s, v);
}

/* Writes the version into the spec of a cluster that names none: a steward with another built-in
 * default must not change it later. */
void ec_default_more(const struct stw_admission *a, struct stw_json spec, struct stw_defaults *d)
{
    stw_autobuf struct stw_buf json = STW_BUF_INIT(1024);
    size_t len;
    struct stw_json was = stw_json_path(a->old_object, "spec.version");
    if (stw_json_there(stw_json_get(spec, "version")))
        return;
    if (a->operation != STW_UPDATE) {
        stw_default_add(d, "/spec/version", "\"" STW_ETCD_VERSION "\"");
        return;
    }
    if (!stw_json_there(was))
        was = ec_version_of_status(stw_json_get(a->old_object, "status"));
    if (stw_json_type(was) != STW_JSON_STRING)
        return;
    const char *raw = stw_json_raw(was, &len);
    stw_buf_add(&json, raw, len);
    if (!json.failed)
        stw_default_add(d, "/spec/version", stw_buf_str(&json));
}
