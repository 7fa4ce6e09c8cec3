/* ticks.c - round numbers along an axis. Labels are made of integers, so no locale changes the decimal point. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/io/plot.h"

/* value * 10^exponent as text. */
static void format(long long value, int exponent, char *text, size_t size) {
    while (value != 0 && value % 10 == 0) {
        value /= 10;
        exponent++;
    }
    if (value == 0)
        exponent = 0;
    char digits[24];
    int n =
        snprintf(digits, sizeof digits, "%llu", value < 0 ? 0 - (unsigned long long)value : (unsigned long long)value);
    const char *sign = value < 0 ? "-" : "";
    int point = n + exponent; /* digits before the decimal point */
    char out[64];
    if (exponent >= 0 && point <= 6)
        snprintf(out, sizeof out, "%s%s%.*s", sign, digits, exponent, "000000");
    else if (exponent < 0 && point > 0)
        snprintf(out, sizeof out, "%s%.*s.%s", sign, point, digits, digits + point);
    else if (exponent < 0 && point > -4)
        snprintf(out, sizeof out, "%s0.%.*s%s", sign, -point, "0000", digits);
    else
        snprintf(out, sizeof out, "%s%se%d", sign, digits, exponent);
    size_t length = strnlen(out, size - 1);
    memcpy(text, out, length);
    text[length] = '\0';
}

void fx_ticks_linear(double lo, double hi, int most, fx_ticks *ticks) {
    static const int factors[] = {1, 2, 5};
    most = most < 2 ? 2 : most > FX_MAX_TICKS ? FX_MAX_TICKS : most;
    int exponent = (int)floor(log10((hi - lo) / most)) - 1, f = 0;
    double step;
    for (;; f++) { /* the smallest of 1, 2, 5 times a power of ten that gives few enough */
        exponent += f == 3;
        f %= 3;
        step = factors[f] * pow(10, exponent);
        if (floor(hi / step) - ceil(lo / step) + 1 <= most)
            break;
    }
    ticks->count = 0;
    for (double k = ceil(lo / step); k <= floor(hi / step) && ticks->count < FX_MAX_TICKS && fabs(k) < 1e15; k++) {
        ticks->at[ticks->count] = k * step;
        format((long long)k * factors[f], exponent, ticks->label[ticks->count++], sizeof ticks->label[0]);
    }
}

void fx_ticks_log(double lo, double hi, int most, fx_ticks *ticks) {
    static const int factors[] = {1, 2, 5};
    int first = (int)ceil(lo), last = (int)floor(hi), stride = (last - first) / (most < 1 ? 1 : most) + 1;
    bool between = last - first < 2; /* under two whole decades: 2 and 5 as well */
    ticks->count = 0;
    for (int e = first - 1; e <= last; e++)
        for (int f = 0; f < (between ? 3 : 1); f++) {
            double at = e + log10(factors[f]);
            if (at < lo || at > hi || (!between && (e - first) % stride) || ticks->count == FX_MAX_TICKS)
                continue;
            ticks->at[ticks->count] = at;
            format(factors[f], e, ticks->label[ticks->count++], sizeof ticks->label[0]);
        }
}
