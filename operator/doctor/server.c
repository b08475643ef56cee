/* SPDX-License-Identifier: Apache-2.0
 *
 * The API server, its clock, and the CRDs. */
#include "operator/doctor/doctor.h"

#include "base/util.h"
#include "base/yaml/yaml.h"
#include "operator/installed/stored_versions.h"
#include "schema/kind.h"

#define CRD_MAX_BYTES (4u << 20)
#define RULES_SINCE 29 /* Kubernetes 1.29 has all that the rules use */
#define SKEW_WARN_S 10
#define SKEW_FAIL_S 300 /* clock skew that certificates allow for */

/* --- reachability and clock */

static void check_clock(struct doctor *d, int64_t date_us, int64_t before_us, int64_t after_us)
{
    if (date_us == 0)
        return;
    /* The header has whole seconds: compare the middle of that second with that of the request. */
    d->ahead_us = date_us + 500000 - (before_us + (after_us - before_us) / 2);
    int64_t seconds = d->ahead_us / 1000000, apart = seconds < 0 ? -seconds : seconds;
    enum stw_check_level verdict = apart >= SKEW_FAIL_S   ? STW_CHECK_FAIL
                                   : apart >= SKEW_WARN_S ? STW_CHECK_WARN
                                                          : STW_CHECK_OK;
    if (verdict == STW_CHECK_OK)
        stw_checkup_add(&d->report, verdict, "clock", NULL,
                        "this machine's is within %d s of the API server's", SKEW_WARN_S);
    else
        stw_checkup_add(&d->report, verdict, "clock", "Set the clock that is wrong: timedatectl",
                        "the API server's is %lld s %s this machine's", (long long)apart,
                        seconds > 0 ? "ahead of" : "behind");
}

/* --- features of newer servers */

static const struct {
    int since; /* of Kubernetes 1.x */
    const char *what, *instead;
} features[] = {
    {21, "policy/v1", "disruption budgets are of policy/v1beta1"},
    {23, "autoscaling/v2", "autoscalers are of autoscaling/v2beta2"},
    {24, "a guard of creates by resourceVersion", "deletionGracePeriodSeconds guards them"},
    {30, "matchConditions of webhooks", "it asks about objects that are being deleted, too"},
};

void doctor_features(struct stw_checkup *report, int minor)
{
    stw_autobuf struct stw_buf lacks = STW_BUF_INIT(1024);
    for (size_t i = 0; i < STW_COUNT(features); i++)
        if (minor < features[i].since)
            stw_buf_addf(&lacks, "%s%s (%s)", lacks.len ? "; " : "", features[i].what,
                         features[i].instead);
    if (lacks.len)
        stw_checkup_add(report, STW_CHECK_OK, "features", NULL, "the server lacks %s",
                        stw_buf_str(&lacks));
    else
        stw_checkup_add(report, STW_CHECK_OK, "features", NULL,
                        "the server has all that {operator} makes use of");
}

int doctor_server(struct doctor *d)
{
    stw_autoanswer struct stw_answer version = {0};
    struct stw_error err = {0};
    char git[64] = "of an unknown version";
    int64_t date_us = 0, before_us = stw_wall_us(&stw_clock_system);
    struct stw_request req = {.method = "GET", .path = "/version", .ret_date_us = &date_us};
    if (stw_remote_do(&d->remote, &req, &version, &err) != 0) {
        stw_checkup_add(
            &d->report, STW_CHECK_FAIL, "API server",
            "Check that it runs, and that the kubeconfig is for it: kubectl cluster-info",
            "%s does not answer: %s", d->remote.kubeconfig->server, err.text);
        return -1;
    }
    int64_t after_us = stw_wall_us(&stw_clock_system);
    (void)stw_json_strcpy(stw_json_get(version.root, "gitVersion"), git, sizeof(git));
    stw_checkup_add(&d->report, STW_CHECK_OK, "API server", NULL, "%s answers, Kubernetes %s",
                    d->remote.kubeconfig->server, git);
    char minor[16] = "";
    (void)stw_json_strcpy(stw_json_get(version.root, "minor"), minor, sizeof(minor));
    d->minor = (int)strtol(minor, NULL, 10); /* "24+" in provider builds */
    if (d->minor > 0)
        doctor_features(&d->report, d->minor);
    check_clock(d, date_us, before_us, after_us);
    return 0;
}

/* --- CRDs */

static bool covers_object(struct stw_json ours, struct stw_json theirs, bool exactly,
                          struct stw_buf *path)
{
    struct stw_json key, value;
    if (stw_json_type(theirs) != STW_JSON_OBJECT ||
        (exactly && stw_json_size(ours) != stw_json_size(theirs)))
        return false;
    stw_json_foreach (ours, key, value) {
        char name[256];
        size_t len = path->len;
        if (stw_json_strcpy(key, name, sizeof(name)) != 0)
            return false;
        stw_buf_addf(path, "%s%s", len ? "." : "", name);
        bool schema = stw_streq(name, "properties");
        struct stw_json other = stw_json_get(theirs, name);
        if (schema ? !covers_object(value, other, true, path) : !doctor_covers(value, other, path))
            return false;
        path->len = len;
    }
    return true;
}

bool doctor_covers(struct stw_json ours, struct stw_json theirs, struct stw_buf *path)
{
    if (stw_json_type(ours) == STW_JSON_OBJECT)
        return covers_object(ours, theirs, false, path);
    if (stw_json_type(ours) != STW_JSON_ARRAY)
        return stw_json_equal(ours, theirs);
    if (stw_json_type(theirs) != STW_JSON_ARRAY || stw_json_size(ours) != stw_json_size(theirs))
        return false;
    for (uint32_t i = 0; i < stw_json_size(ours); i++) {
        size_t len = path->len;
        stw_buf_addf(path, "[%u]", i);
        if (!doctor_covers(stw_json_at(ours, i), stw_json_at(theirs, i), path))
            return false;
        path->len = len;
    }
    return true;
}

struct comparison {
    struct stw_json theirs;
    struct stw_buf *path;
    bool same;
};

static int compare_crd(void *ctx, unsigned index, size_t line, const struct stw_buf *json)
{
    struct comparison *c = ctx;
    stw_autojson struct stw_json_doc doc = {0};
    (void)index;
    (void)line;
    c->same = stw_json_scan(&doc, stw_buf_str(json), json->len, NULL) == 0 &&
              doctor_covers(stw_json_get(stw_json_root(&doc), "spec"),
                            stw_json_get(c->theirs, "spec"), c->path);
    return 0;
}

typedef void print_crd_fn(const struct stw_operator *op, const struct stw_kind *k,
                          struct stw_buf *out);

/* Whether it matches what this program prints: stw_kind_crd or stw_kind_crd_rules. */
static bool is_our_crd(const struct doctor *d, const struct stw_kind *kind, print_crd_fn *print,
                       struct stw_json crd, struct stw_buf *path)
{
    stw_autobuf struct stw_buf yaml = STW_BUF_INIT(CRD_MAX_BYTES);
    struct comparison c = {.theirs = crd, .path = path};
    print(d->op, kind, &yaml);
    return stw_yaml_each("crd", stw_buf_str(&yaml), yaml.len, compare_crd, &c, NULL) == 0 && c.same;
}

static bool is_established(struct stw_json crd)
{
    struct stw_json key, condition;
    stw_json_foreach (stw_json_path(crd, "status.conditions"), key, condition)
        if (stw_json_is(stw_json_get(condition, "type"), "Established"))
            return stw_json_is(stw_json_get(condition, "status"), "True");
    return false;
}

/* With rules where the server can apply them. */
static const char *apply_crds(struct doctor *d)
{
    stw_autobuf struct stw_buf kinds = STW_BUF_INIT(8192);
    if (stw_kinds_are_some(d->op))
        stw_kinds_names(d->op->kinds, &kinds);
    return doctor_advice(d, "{operator} print crds%s%s%s | kubectl apply -f -",
                         d->minor >= RULES_SINCE ? " --rules" : "", kinds.len ? " --kinds " : "",
                         stw_buf_str(&kinds));
}

static void check_stored_versions(struct doctor *d, struct stw_json crd, const char *name)
{
    struct stw_stored stored;
    stw_stored_read(crd, &stored);
    if (*stored.old)
        stw_checkup_add(&d->report, STW_CHECK_WARN, "stored versions",
                        doctor_advice(d, "{operator} migrate --yes"),
                        "%s: objects may still be stored as %s, not as %s: the CRD cannot lose "
                        "that version before they are written again",
                        name, stored.old, stored.now);
}

/* CRDs on servers that know validation rules: how many have other rules, or none. */
struct rules_seen {
    unsigned without;
    char first[512]; /* its name */
    struct stw_buf path;
};

static void compare_rules(const struct doctor *d, const struct stw_kind *kind, struct stw_json crd,
                          const char *name, struct rules_seen *seen)
{
    stw_autobuf struct stw_buf path = STW_BUF_INIT(4096);
    if (d->minor < RULES_SINCE || is_our_crd(d, kind, stw_kind_crd_rules, crd, &path))
        return;
    if (seen->without++)
        return;
    stw_format(seen->first, sizeof(seen->first), "%s", name);
    stw_buf_adds(&seen->path, stw_buf_str(&path));
}

static bool check_crd(struct doctor *d, const struct stw_kind *kind, struct rules_seen *seen)
{
    stw_autoanswer struct stw_answer crd = {0};
    stw_autobuf struct stw_buf path = STW_BUF_INIT(4096);
    struct stw_error err = {0};
    char name[512];
    stw_format(name, sizeof(name), "%s.%s", kind->plural, kind->group);
    if (stw_remote_get(&d->remote, &stw_res_crd, NULL, name, &crd, &err) != 0) {
        if (err.code != STW_ERR_NOT_FOUND)
            doctor_unread(d, err.code == STW_ERR_FORBIDDEN ? "CRDs" : name, &err);
        else
            stw_checkup_add(&d->report, STW_CHECK_FAIL, "CRD", apply_crds(d), "%s is not there",
                            name);
        return false;
    }
    if (!is_established(crd.root)) {
        stw_checkup_add(&d->report, STW_CHECK_FAIL, "CRD",
                        doctor_advice(d, "kubectl describe crd %s", name),
                        "%s is not established: the API server does not serve it", name);
        return false;
    }
    check_stored_versions(d, crd.root, name);
    if (is_our_crd(d, kind, stw_kind_crd, crd.root, &path)) {
        compare_rules(d, kind, crd.root, name, seen);
        return true;
    }
    stw_checkup_add(&d->report, STW_CHECK_WARN, "CRD", apply_crds(d),
                    "%s differs from what this program (%s) prints, first at spec.%s: it is of "
                    "another version",
                    name, d->op->version, stw_buf_str(&path));
    return false;
}

static void report_rules(struct doctor *d, const struct rules_seen *seen, unsigned good)
{
    if (d->minor < RULES_SINCE || !good)
        return;
    if (!seen->without)
        stw_checkup_add(&d->report, STW_CHECK_OK, "CRD rules", NULL,
                        "the API server refuses bad objects by the CRDs, even without the webhook");
    else
        stw_checkup_add(&d->report, STW_CHECK_WARN, "CRD rules", apply_crds(d),
                        "%u of %u CRDs lack the validation rules for Kubernetes 1.%d and later, "
                        "first %s at spec.%s: without the webhook the API server accepts objects "
                        "that it would refuse",
                        seen->without, good, RULES_SINCE, seen->first, stw_buf_str(&seen->path));
}

void doctor_crds(struct doctor *d)
{
    unsigned count = 0, good = 0;
    struct rules_seen seen = {.path = STW_BUF_INIT(4096)};
    for (; d->op->kinds[count]; count++)
        good += check_crd(d, d->op->kinds[count], &seen);
    if (good == count)
        stw_checkup_add(&d->report, STW_CHECK_OK, "CRDs", NULL,
                        "all %u are established, and as this program (%s) prints them", count,
                        d->op->version);
    report_rules(d, &seen, good);
    stw_buf_done(&seen.path);
}
