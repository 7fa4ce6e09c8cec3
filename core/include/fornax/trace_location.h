/* trace_location.h - makes each traced call record where it stands, for error texts. Included by trace.h. */
#ifndef FORNAX_TRACE_LOCATION_H
#define FORNAX_TRACE_LOCATION_H

#include <fornax/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* For the macros of this file. Thread-local. `file` must live as long as the program (__FILE__ does). */
FX_API void fx_trace_here(const char *file, int line);

#ifdef __cplusplus
}
#endif
#endif
