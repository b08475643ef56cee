/* SPDX-License-Identifier: Apache-2.0
 *
 * What is done with a child, decided from what is known of it.  A pure function. */
#ifndef STW_CONTROLLER_CHILD_DECIDE_H
#define STW_CONTROLLER_CHILD_DECIDE_H

#include <stdbool.h>

/* The object of the child's name, as the cache has it, or as the server answered now. */
struct stw_child_facts {
    bool answered;    /* the server has answered: the object exists */
    bool ours;        /* its owner reference or mark is that of our owner */
    bool controlled;  /* an owner reference is that of a controller */
    bool left_behind; /* it belongs to a former owner of the same name */
    bool terminating;
    /* Of the owner and its status. */
    bool may_adopt;
    bool refused; /* it may not be adopted: the reason is known */
    bool applied_before;
    /* Of an object of ours. */
    bool as_wanted;
    bool pods_foreign; /* its new selector would not select the pods of the Deployment */
    bool
        pods_start; /* no pod of the Deployment is available; if answered, its selector changes, too */
    bool template_waits; /* the wanted pod template may not be applied yet */
    bool template_left;  /* only the template differs, as the status remembers it */
};

enum stw_child_step {
    STW_STEP_KEEP, /* as wanted */
    STW_STEP_WAIT_FOR_END,
    STW_STEP_WAIT_FOR_COLLECTOR,
    STW_STEP_REFUSE,
    STW_STEP_NAME_HOLDER,    /* another owner has it */
    STW_STEP_HOLD,           /* leave it as it is, and say which pods it would lose */
    STW_STEP_WAIT_FOR_PODS,  /* leave it as it is until those that it will select are available */
    STW_STEP_LOOK,           /* ask the server, and decide again */
    STW_STEP_CHECK_TEMPLATE, /* the same, unless what the template would change is told already */
    STW_STEP_KEEP_TEMPLATE,  /* write what differs, except the template */
    STW_STEP_CREATE,         /* guarded: an object that exists is not changed */
    STW_STEP_REWRITE,
    STW_STEP_ADOPT,
};

enum stw_child_step stw_child_decide(const struct stw_child_facts *f);

#endif
