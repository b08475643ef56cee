/* SPDX-License-Identifier: Apache-2.0 */
#include "hostile/surroundings.h"

#include "base/tzfile.h"
#include "base/util.h"
#include "hostile/admission.h"
#include "kinds/kinds.h"
#include "schema/zones.h"
#include "sql/target/target.h"
#include "support/answers.h"

#include <stdio.h>

#define ADMIN "\"host\":\"h\",\"admin\":{\"user\":\"chief\",\"passwordFile\":\"/f\"}"
const char hostile_config[] =
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

static struct stw_product product = {.targets = get_targets, .agent_image = "steward:1"};
static const struct stw_env env = {
    .op = &stw_operator_steward, .lookup = &stw_test_lookup, .product = &product};

const struct stw_env *hostile_env(void)
{
    return &env;
}

const struct stw_product *hostile_product(void)
{
    return &product;
}

void hostile_open(void)
{
    stw_autojson struct stw_json_doc doc = {0};
    stw_autofindings struct stw_findings f = {0};
    HOSTILE_EXPECT(stw_json_scan(&doc, hostile_config, strlen(hostile_config), NULL) == 0);
    HOSTILE_EXPECT(stw_targets_parse(stw_json_get(stw_json_root(&doc), "targets"), &targets, &f) ==
                   0);
    product.zones = stw_zones_create(stw_tz_read);
    HOSTILE_EXPECT(product.zones);
}

void hostile_close(void)
{
    stw_targets_unref(targets);
    stw_zones_destroy(product.zones);
}
