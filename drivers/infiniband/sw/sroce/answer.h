/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The responder's answers */
#ifndef SROCE_ANSWER_H
#define SROCE_ANSWER_H

struct sroce_qp;

void sroce_answer_run(struct sroce_qp *qp);

#endif /* SROCE_ANSWER_H */
