/* SPDX-License-Identifier: Apache-2.0
 *
 * What the kinds of this program need to know beside the objects.  The framework passes a pointer to
 * it through (schema/kind.h, struct stw_env; controller/manager.h) and does not look inside. */
#ifndef STW_KINDS_COMMON_PRODUCT_H
#define STW_KINDS_COMMON_PRODUCT_H

#include "schema/kind.h"

struct ec_backups;
struct stw_reach;
struct stw_registries;
struct dbu_target_store;
struct stw_targets;
struct stw_zones;

/* All of it is borrowed, and outlives the manager and the webhook. */
struct stw_product {
    int32_t node_port_min, node_port_max; /* of the API server; 0, 0: 30000-32767 */
    struct stw_zones *zones;              /* NULL: whether a time zone exists is not checked */
    /* The current database targets, a reference that the caller gives back.  NULL: unknown. */
    struct stw_targets *(*targets)(void *ctx);
    void *targets_ctx;
    struct dbu_target_store *target_store; /* reports changes of the targets; or NULL */
    const struct stw_reach *reach;         /* where endpoints in objects may lead; NULL: anywhere */
    struct stw_registries *registries;     /* that may be asked for digests of images; NULL: none */
    const char *agent_image;               /* of pods that work on volumes; NULL, "": none */
    const struct ec_backups *etcd_backups; /* or NULL: EtcdClusters report no backups */
};

static inline struct stw_zones *stw_product_zones(const struct stw_env *env)
{
    return env && env->product ? env->product->zones : NULL;
}

static inline bool stw_product_knows_targets(const struct stw_env *env)
{
    return env && env->product && env->product->targets;
}

static inline const struct stw_reach *stw_product_reach(const struct stw_env *env)
{
    return env && env->product ? env->product->reach : NULL;
}

static inline struct stw_registries *stw_product_registries(const struct stw_env *env)
{
    return env && env->product ? env->product->registries : NULL;
}

static inline const char *stw_product_agent_image(const struct stw_env *env)
{
    return env && env->product && env->product->agent_image ? env->product->agent_image : "";
}

static inline const struct ec_backups *stw_product_etcd_backups(const struct stw_env *env)
{
    return env && env->product ? env->product->etcd_backups : NULL;
}

/* A reference for the caller, or NULL. */
static inline struct stw_targets *stw_product_targets(const struct stw_env *env)
{
    return stw_product_knows_targets(env) ? env->product->targets(env->product->targets_ctx) : NULL;
}

#endif
