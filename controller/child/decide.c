/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/child/decide.h"

enum stw_child_step stw_child_decide(const struct stw_child_facts *f)
{
    if (f->answered && f->terminating)
        return STW_STEP_WAIT_FOR_END;
    if (!f->ours && f->left_behind)
        return STW_STEP_WAIT_FOR_COLLECTOR;
    if (!f->ours && f->answered)
        return f->controlled || !f->may_adopt ? STW_STEP_NAME_HOLDER : STW_STEP_ADOPT;
    if (!f->ours)
        return f->refused ? STW_STEP_REFUSE : STW_STEP_CREATE;
    if (f->terminating)
        return STW_STEP_WAIT_FOR_END;
    if (f->as_wanted)
        return STW_STEP_KEEP;
    /* Its selector would leave pods that it serves. */
    if (f->pods_foreign)
        return STW_STEP_HOLD;
    if (f->pods_start)
        return f->answered ? STW_STEP_WAIT_FOR_PODS : STW_STEP_LOOK;
    if (f->template_waits)
        return f->answered ? STW_STEP_KEEP_TEMPLATE : STW_STEP_CHECK_TEMPLATE;
    /* After the first apply, a difference is a repair: the server's object shows which fields differ. */
    if (!f->answered && !f->template_left && f->applied_before)
        return STW_STEP_LOOK;
    return STW_STEP_REWRITE;
}
