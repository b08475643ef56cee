/* SPDX-License-Identifier: Apache-2.0
 *
 * The engines of this build: the only file that knows them all. */
#include "base/util.h"
#include "sql/target/pool_priv.h"

static const struct {
    enum stw_engine engine;
    const struct stw_engine_ops *ops;
} engines[] = {
#ifdef STW_WITH_MYSQL
    {STW_ENGINE_MYSQL, &stw_engine_mysql},
    {STW_ENGINE_MARIADB, &stw_engine_mysql},
#endif
#ifdef STW_WITH_POSTGRESQL
    {STW_ENGINE_POSTGRESQL, &stw_engine_postgresql},
#endif
    {STW_ENGINES, NULL},
};

static const struct stw_engine_ops *ops_of(enum stw_engine engine)
{
    for (size_t i = 0; i < STW_COUNT(engines); i++)
        if (engines[i].engine == engine)
            return engines[i].ops;
    return NULL;
}

int stw_pool_create(const struct stw_pool_config *config, struct stw_pool **ret,
                    struct stw_error *err)
{
    const struct stw_engine_ops *ops = ops_of(config->target->engine);
    if (!ops)
        return stw_fail(err, STW_ERR_INVALID,
                        "target \"%s\": this steward was built without support for %s",
                        config->target->name, stw_engine_name(config->target->engine));
    return stw_pool_make(config, ops, ret, err);
}
