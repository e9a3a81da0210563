// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The bodies of the tracepoints that trace.h declares */
#define CREATE_TRACE_POINTS
#include "trace.h"
