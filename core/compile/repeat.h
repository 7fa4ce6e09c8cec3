/* repeat.h - groups that are alike are lowered once: a deep model repeats its layers. */
#ifndef FX_COMPILE_REPEAT_H
#define FX_COMPILE_REPEAT_H

#include "core/compile/emit.h"

/* What of the program belongs to an emitted group, to be found again under the group's description. */
typedef struct fx_repeats fx_repeats;

/* Memory from the arena; NULL when it is out, which every function below takes for "never seen". */
fx_repeats *fx_repeats_create(fx_arena *arena, const fx_values *values);
/* If a group like g was emitted before, appends its steps with g's buffers and returns true. If not, remembers that g's
 * steps and buffers begin here. */
bool fx_repeat(fx_repeats *r, fx_builder *b, const fx_group *g, fx_status *status);
/* g is emitted: what was appended since fx_repeat is its part. */
void fx_repeat_record(fx_repeats *r, fx_builder *b);

#endif
