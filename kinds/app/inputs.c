/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds/app/inputs.h"

#include "base/util.h"
#include "kube/tree.h"

#include <stdio.h>

/* --- the names in a spec */

void app_names_read(struct stw_json spec, struct stw_inputs *n)
{
    stw_inputs_add_secret(n, stw_json_path(spec, "config.databaseUrlSecretRef.name"));
    stw_inputs_add_env(n, stw_json_get(spec, "env"));
    stw_inputs_add_pod(n, stw_json_path(spec, "podTemplate.spec"));
}

/* --- the status */

void app_inputs_read(const json_t *status, struct app_inputs *i)
{
    const json_t *from = json_object_get(status, "inputs");
    *i = (struct app_inputs){.restarted = stw_tree_time(from, "lastRestartTime", APP_INPUTS_NEVER),
                             .interval_s = stw_tree_count(from, "intervalSeconds"),
                             .restarting = json_is_true(json_object_get(from, "restarting"))};
    stw_tree_copy(from, "hash", i->digest, sizeof(i->digest));
    stw_tree_copy(from, "namesHash", i->names, sizeof(i->names));
    stw_tree_copy(from, "restartHash", i->applied, sizeof(i->applied));
}

void app_inputs_write(const struct app_inputs *i, json_t *status)
{
    json_t *to = json_object();
    char time[STW_TIME_LEN];
    stw_tree_set_text(to, "hash", i->digest);
    stw_tree_set_text(to, "namesHash", i->names);
    stw_tree_set_text(to, "restartHash", i->applied);
    if (i->restarted != APP_INPUTS_NEVER) {
        stw_time_format(i->restarted * 1000000, time);
        stw_tree_set_text(to, "lastRestartTime", time);
        (void)json_object_set_new(to, "intervalSeconds", json_integer((json_int_t)i->interval_s));
    }
    if (i->pending)
        (void)json_object_set_new(to, "pending", json_true());
    if (i->restarting)
        (void)json_object_set_new(to, "restarting", json_true());
    if (json_object_size(to) > 0)
        (void)json_object_set_new(status, "inputs", to);
    else
        json_decref(to);
}

/* --- the decision */

/* Objects that keep changing make each interval twice as long as the one before. */
static void restart(const struct app_spec *spec, const char *digest, int64_t now,
                    struct app_inputs *s)
{
    int64_t least = spec->restart.min_interval_s;
    bool soon = s->restarted != APP_INPUTS_NEVER && now - s->restarted < 2 * s->interval_s;
    s->interval_s = soon ? STW_MIN(STW_MAX(2 * s->interval_s, least), APP_INPUTS_MOST_S) : least;
    s->restarted = now;
    s->restarting = true;
    stw_format(s->digest, sizeof(s->digest), "%s", digest);
    stw_format(s->applied, sizeof(s->applied), "%s", digest);
}

static bool is_within(const struct app_spec *spec, const struct stw_zone *zone, int64_t now)
{
    struct stw_hours hours = {.windows = spec->restart.windows};
    return zone && stw_hours_at(&hours, zone, now) == STW_HOURS_ALLOWED;
}

bool app_inputs_has_windows(const struct app_spec *spec)
{
    return spec->restart.enabled && stw_json_size(spec->restart.windows) > 0;
}

bool app_inputs_in_window(const struct app_spec *spec, const struct stw_zone *zone, int64_t now)
{
    return app_inputs_has_windows(spec) && is_within(spec, zone, now);
}

bool app_inputs_is_late(const struct app_spec *spec, const struct stw_zone *zone, int64_t now,
                        const struct app_inputs *s)
{
    return s->restarting && stw_json_size(spec->restart.windows) > 0 && !is_within(spec, zone, now);
}

/* Without a former restart it is not known with which versions the pods were started.  The interval
 * had passed when this one was decided. */
void app_inputs_take_back(struct app_inputs *s, const char *annotation)
{
    if (stw_streq(s->applied, annotation))
        return;
    stw_format(s->applied, sizeof(s->applied), "%s", annotation);
    stw_format(s->digest, sizeof(s->digest), "%s", *annotation ? annotation : APP_INPUTS_UNKNOWN);
    s->restarted = APP_INPUTS_NEVER;
    s->interval_s = 0;
    s->restarting = false;
}

static bool is_allowed(const struct app_spec *spec, const struct stw_zone *zone, int64_t now,
                       const struct app_inputs *s)
{
    bool rested = s->restarted == APP_INPUTS_NEVER ||
                  now - s->restarted >= STW_MAX(s->interval_s, spec->restart.min_interval_s);
    return rested && is_within(spec, zone, now);
}

void app_inputs_decide(const struct app_spec *spec, const struct stw_zone *zone,
                       const struct app_seen *seen, int64_t now, struct app_inputs *s)
{
    s->pending = false;
    if (s->restarted > now) /* the clock was set back */
        s->restarted = now;
    s->interval_s = STW_MIN(STW_MAX(s->interval_s, 0), APP_INPUTS_MOST_S);
    if (!spec->restart.enabled) { /* the annotation stays: removing it would restart the pods */
        s->digest[0] = s->names[0] = '\0';
        return;
    }
    if (!stw_streq(s->names, seen->names)) { /* the pod template has changed with them */
        s->digest[0] = '\0';
        stw_format(s->names, sizeof(s->names), "%s", seen->names);
    }
    if (seen->missing) /* new pods could not start */
        return;
    if (!*s->digest) {
        stw_format(s->digest, sizeof(s->digest), "%s", seen->digest);
        return;
    }
    if (stw_streq(s->digest, seen->digest))
        return;
    s->pending = !is_allowed(spec, zone, now, s);
    if (!s->pending)
        restart(spec, seen->digest, now, s);
}

uint64_t app_inputs_wait_ms(const struct app_inputs *s, int64_t now)
{
    int64_t wait = s->restarted == APP_INPUTS_NEVER ? 0 : s->restarted + s->interval_s - now;
    return s->pending ? (uint64_t)(wait > 0 ? wait : APP_INPUTS_RECHECK_S) * 1000 : 0;
}
