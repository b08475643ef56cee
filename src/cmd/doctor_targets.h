/* SPDX-License-Identifier: Apache-2.0
 *
 * The checks of `steward doctor` that only steward has. */
#ifndef STW_CMD_DOCTOR_TARGETS_H
#define STW_CMD_DOCTOR_TARGETS_H

struct doctor;
struct stw_targets;

void stw_doctor_targets(struct doctor *d);
/* Reports DatabaseUsers that are invalid with these targets. */
void stw_doctor_users(struct doctor *d, struct stw_targets *targets);

#endif
