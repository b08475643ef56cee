/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory of a run: what it reserves, and what its answers may take. */
#include "base/process/memory_budget.h"
#include "base/util.h"
#include "controller/manager/manager_priv.h"
#include "kube/api/answers.h"

/* What is reserved beside the needs that the run has stated is for answers. */
static void update_spare(const struct stw_run *run, const char *id)
{
    size_t granted = stw_reservations_granted(run->manager->reservations, id);
    stw_spare_set(granted - STW_MIN(granted, stw_answers_reserved()));
}

enum stw_reserve stw_run_reserve(struct stw_run *run, size_t bytes)
{
    char id[STW_REMAINS_KEY_LEN];
    stw_remains_key(run->controller, run->key, id);
    enum stw_reserve answer = stw_reservations_take(run->manager->reservations, id, bytes);
    run->waits = answer == STW_RESERVE_WAITS;
    if (answer == STW_RESERVED)
        stw_answers_reserve(bytes);
    update_spare(run, id);
    return answer;
}

void stw_run_begin_memory(const struct stw_run *run)
{
    char id[STW_REMAINS_KEY_LEN];
    stw_remains_key(run->controller, run->key, id);
    stw_answers_begin();
    update_spare(run, id);
}

/* Reserves memory for the answers that were refused, beside what the run had stated: it is run again
 * with it, in its turn.  Beyond what a namespace may have, refused answers are a failure. */
static bool reserve_spare(const struct stw_run *run, const char *id, size_t stated, size_t wanted)
{
    size_t share = stw_share_limit(STW_SHARE_RECONCILES), most = share - share / 4;
    size_t need = STW_MIN(stated + wanted, most);
    if (wanted == 0 || need <= stw_reservations_granted(run->manager->reservations, id))
        return false;
    enum stw_reserve answer = stw_reservations_take(run->manager->reservations, id, need);
    if (answer == STW_RESERVED)
        stw_manager_enqueue(run->manager, run->controller->kind->kind, run->key);
    return answer == STW_RESERVED || answer == STW_RESERVE_WAITS;
}

void stw_run_end_memory(struct stw_run *run)
{
    char id[STW_REMAINS_KEY_LEN];
    stw_remains_key(run->controller, run->key, id);
    size_t stated = stw_answers_reserved(), wanted = stw_spare_end();
    stw_answers_end();
    if (!run->waits && reserve_spare(run, id, stated, wanted))
        run->waits = true;
    else
        stw_reservations_end(run->manager->reservations, id);
}
