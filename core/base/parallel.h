/* parallel.h - a loop whose turns run on several threads. */
#ifndef FX_BASE_PARALLEL_H
#define FX_BASE_PARALLEL_H

#include "fornax/base.h"

/* Calls each(user, i) for i in [0, n) on up to `threads` threads, the caller's among them; fewer when the system refuses
 * more. After a failure no turn is begun any more; the first failure is returned, its text becomes the caller's. */
fx_status fx_parallel(int n, int threads, fx_status (*each)(void *user, int i), void *user);

#endif
