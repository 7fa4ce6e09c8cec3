/* schedules.c - the table of schedules, tried from the top. */
#include "core/compile/schedule.h"

const fx_schedule *const fx_schedules[] = {&fx_schedule_pointwise,
                                           &fx_schedule_sort,
                                           &fx_schedule_row,
                                           &fx_schedule_arg_reduce,
                                           &fx_schedule_cumulative,
                                           &fx_schedule_scatter,
                                           &fx_schedule_contract_panels,
                                           &fx_schedule_contract_subgroup,
                                           &fx_schedule_contract_shared,
                                           &fx_schedule_contract,
                                           NULL};
