/* SPDX-License-Identifier: Apache-2.0
 *
 * Any configuration file: it has errors or yields a list.  Every target of a list can be found, has
 * exactly one source of its password, and allows only privileges that its engine has. */
#include "base/json.h"
#include "kinds/databaseuser/target/targets.h"
#include "sql/target/dialect.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

static void check_target(const struct stw_targets *all, const struct stw_target *t)
{
    EXPECT(stw_targets_find(all, t->name) == t);
    EXPECT(t->engine < STW_ENGINES && *t->host && *t->admin_user);
    EXPECT(t->port >= 1 && t->port <= 65535);
    EXPECT(!t->secret_name == !t->secret_key);
    EXPECT(!t->secret_name != !t->password_file);
    EXPECT(t->max_connections >= 1 && t->connect_timeout_seconds >= 1);
    for (const char *const *p = t->allowed_privileges; p && *p; p++)
        EXPECT(stw_streq(*p, "GRANT OPTION") || stw_engine_privilege(t->engine, *p));
    EXPECT(stw_target_same_login(t, t));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dbu_autotargetfile struct dbu_target_file f = {0};
    struct stw_error err = {0};
    if (size > 65536)
        return 0;
    int rc = dbu_target_file_parse("f", (const char *)data, size, &f, &err);
    EXPECT(rc == 0 ? f.error_count == 0 : f.error_count > 0 && !f.targets && *err.text);
    EXPECT(err.code != STW_ERR_INTERNAL);
    for (size_t i = 0; i < stw_targets_count(f.targets); i++)
        check_target(f.targets, stw_targets_at(f.targets, i));
    return 0;
}
