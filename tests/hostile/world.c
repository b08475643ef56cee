/* SPDX-License-Identifier: Apache-2.0 */
#include "hostile/world.h"

#include "base/tzfile.h"
#include "base/util.h"
#include "hostile/admission.h"
#include "kinds/kinds.h"
#include "schema/zones.h"
#include "sql/target.h"

#include <stdio.h>

/* What is found depends on the key alone, so that an object gets the same verdict twice. */
static bool find(void *ctx, const char *index, const char *key, const char *self, char *ret_holder)
{
    (void)ctx, (void)index, (void)self;
    if (strlen(key) % 13)
        return false;
    (void)snprintf(ret_holder, 512, "other/one");
    return true;
}

static int has(void *ctx, const char *plural, const char *key)
{
    (void)ctx, (void)plural;
    return (int)(strlen(key) % 3) - 1;
}

static int secret(void *ctx, const char *ns, const char *name, const char *key,
                  struct stw_secret_facts *ret)
{
    size_t n = strlen(name) + strlen(key);
    (void)ctx, (void)ns;
    *ret = (struct stw_secret_facts){.secret_there = n % 2,
                                     .key_there = n % 3,
                                     .is_text = n % 5,
                                     .ends_in_newline = n % 4,
                                     .len = (uint32_t)(n % 20),
                                     .bare_len = (uint32_t)(n % 20 / 2)};
    return n % 11 ? 0 : -1;
}

#define ADMIN "\"host\":\"h\",\"admin\":{\"user\":\"chief\",\"passwordFile\":\"/f\"}"
const char hostile_world_config[] =
    "{\"targets\":[{\"name\":\"orders\",\"engine\":\"mariadb\"," ADMIN
    ",\"allowAllDatabases\":true},"
    "{\"name\":\"my\",\"engine\":\"mysql\"," ADMIN ",\"allowedNamespaces\":[\"b\"]},"
    "{\"name\":\"pg\",\"engine\":\"postgresql\"," ADMIN ",\"allowedPrivileges\":[\"SELECT\"]}]}";

static struct stw_targets *targets;

static struct stw_targets *get_targets(void *ctx)
{
    (void)ctx;
    return stw_targets_ref(targets);
}

static const struct stw_lookup lookup = {.find = find, .has = has, .secret = secret};
static struct stw_product product = {.targets = get_targets, .agent_image = "steward:1"};
static const struct stw_env env = {
    .op = &stw_operator_steward, .lookup = &lookup, .product = &product};

const struct stw_env *hostile_world_env(void)
{
    return &env;
}

const struct stw_product *hostile_world_product(void)
{
    return &product;
}

void hostile_world_open(void)
{
    stw_autojson struct stw_json_doc doc = {0};
    stw_autofindings struct stw_findings f = {0};
    HOSTILE_EXPECT(stw_json_scan(&doc, hostile_world_config, strlen(hostile_world_config), NULL) ==
                   0);
    HOSTILE_EXPECT(stw_targets_parse(stw_json_get(stw_json_root(&doc), "targets"), &targets, &f) ==
                   0);
    product.zones = stw_zones_create(stw_tz_read);
    HOSTILE_EXPECT(product.zones);
}

void hostile_world_close(void)
{
    stw_targets_unref(targets);
    stw_zones_destroy(product.zones);
}
