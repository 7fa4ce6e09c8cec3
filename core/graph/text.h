/* text.h - what the parser of graphs reads words with: a place in a text of known length, and the first error.
 *
 * Calls named want_ record an error and return false when the text has something else; take_ and peek_ only say so.
 * White space and comments ("#" to the end of the line) are skipped. Nothing is read past the end. */
#ifndef FX_GRAPH_TEXT_H
#define FX_GRAPH_TEXT_H

#include "fornax/base.h"

typedef struct fx_text {
    const char *start, *p, *end;
    fx_status status;
    int depth;           /* the caller's count of nesting */
    const char *counted; /* lines before this one: line - 1 */
    int line;
} fx_text;

enum { FX_TEXT_WORD = 64 }; /* size of a buffer for a word */

bool fx_text_fail(fx_text *s, const char *expected); /* with line, column and what stands there; false */
bool fx_text_no_memory(fx_text *s);                  /* false */
int fx_text_line(fx_text *s);                        /* that p is in, from 1 */
void fx_text_skip(fx_text *s);
bool fx_text_peek(fx_text *s, char c);
bool fx_text_take(fx_text *s, char c);
bool fx_text_want(fx_text *s, char c);
size_t fx_text_word(fx_text *s, const char **w); /* letters, digits, "_"; its length, 0 for none */
bool fx_text_want_word(fx_text *s, char out[FX_TEXT_WORD], const char *expected);
bool fx_text_take_word(fx_text *s, const char *w);
bool fx_text_want_int(fx_text *s, int64_t *v);
bool fx_text_want_element(fx_text *s, fx_dtype d, void *out);

#endif
