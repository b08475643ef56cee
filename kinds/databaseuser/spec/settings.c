/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules on the settings of a DatabaseUser on PostgreSQL. */
#include "kinds/databaseuser/spec/spec_priv.h"

#include "base/arena.h"
#include "base/util.h"

#define PATH_BYTES 64

static void check_allowed(const struct dbu_scene *s, uint32_t i, const struct dbu_spec_setting *one)
{
    char path[PATH_BYTES];
    stw_autobuf struct stw_buf allowed = STW_BUF_INIT(8192);
    if (one->name && *one->name && !dbu_check_setting(one->name) &&
        !stw_target_allows_setting(s->target, one->name)) {
        stw_format(path, sizeof(path), "spec.settings[%u].name", i);
        stw_engine_list_names(s->target->allowed_settings ? s->target->allowed_settings
                                                          : stw_target_settings,
                              &allowed);
        dbu_add_finding(s, path, STW_NOT_SUPPORTED, one->name,
                        "supported values: %s, the allowedSettings of target \"%s\"",
                        stw_buf_str(&allowed), s->target_name);
        s->f->failed |= allowed.failed;
    }
    stw_format(path, sizeof(path), "spec.settings[%u].database", i);
    if (one->database && s->a->ns &&
        (stw_engine_reserves_database(s->target->engine, one->database) ||
         !stw_target_allows_database(s->target, s->a->ns, one->database)))
        dbu_add_finding(s, path, STW_FORBIDDEN, NULL,
                        "target \"%s\" does not allow \"%.64s\" for namespace \"%s\"",
                        s->target_name, one->database, s->a->ns);
}

void dbu_check_settings(const struct dbu_scene *s)
{
    struct dbu_spec_setting all[DBU_SETTINGS_MAX];
    struct stw_arena arena;
    uint32_t count = stw_json_size(s->user->settings);
    if (!stw_json_there(s->user->settings) || count > DBU_SETTINGS_MAX)
        return; /* the field table reports it */
    if (s->engine && !s->engine->has_schemas) {
        dbu_add_finding(s, "spec.settings", STW_INVALID, NULL, "not supported on %s",
                        s->engine->name);
        return;
    }
    stw_arena_init(&arena);
    for (uint32_t i = 0; i < count; i++) {
        all[i] = (struct dbu_spec_setting){0};
        /* wrong types have been reported already */
        (void)stw_fields_decode(dbu_setting_fields, stw_json_at(s->user->settings, i), &arena,
                                &all[i]);
        bool again = false;
        for (uint32_t k = 0; k < i && !again && all[i].name; k++)
            again =
                stw_same(all[k].name, all[i].name) && stw_same(all[k].database, all[i].database);
        char path[PATH_BYTES];
        stw_format(path, sizeof(path), "spec.settings[%u]", i);
        if (again)
            dbu_add_finding(s, path, STW_DUPLICATE, all[i].name, "%s", "");
        else if (s->engine && s->target)
            check_allowed(s, i, &all[i]);
    }
    stw_arena_done(&arena);
}
