/* fornax.h - everything a program that uses Fornax includes. */
#ifndef FORNAX_FORNAX_H
#define FORNAX_FORNAX_H

#include <fornax/base.h>
#include <fornax/trace.h>
#include <fornax/transform.h>
#include <fornax/device.h>
#include <fornax/nn.h>
#include <fornax/io.h>

#endif
