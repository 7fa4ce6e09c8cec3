/* font.c - the glyphs: a string each, a digit of base 32 (0-9, A-V) for every row of five pixels, top row first. */
#include "core/io/font.h"

#include <string.h>

/* From ' ' to '~'. Missing rows at the end are empty. */
static const char glyphs[95][10] = {
    "",          "4444404", "AAA",       "AAVAVAA",  "4FKE5U4", "OP248J3", "CIK8LID", "444",     "2488842",
    "8422248",   "04LEL4",  "044V44",    "00000448", "000V",    "00000CC", "01248G",  "EHJLPHE", "4C4444E",
    "EH1248V",   "V2421HE", "26AIV22",   "VGU11HE",  "68GUHHE", "V124888", "EHHEHHE", "EHHF12C", "0CC0CC",
    "0CC0C48",   "248G842", "00V0V",     "8421248",  "EH12404", "EH1DLLE", "EHHVHHH", "UHHUHHU", "EHGGGHE",
    "SIHHHIS",   "VGGUGGV", "VGGUGGG",   "EHGNHHF",  "HHHVHHH", "E44444E", "72222IC", "HIKOKIH", "GGGGGGV",
    "HRLLHHH",   "HHPLJHH", "EHHHHHE",   "UHHUGGG",  "EHHHLID", "UHHUKIH", "FGGE11U", "V444444", "HHHHHHE",
    "HHHHHA4",   "HHHLLLA", "HHA4AHH",   "HHHA444",  "V1248GV", "E88888E", "0G8421",  "E22222E", "4AH",
    "000000V",   "842",     "00E1FHF",   "GGMPHHU",  "00EGGHE", "11DJHHF", "00EHVGE", "698S888", "00FHHHF1E",
    "GGMPHHH",   "40C444E", "2062222IC", "GGIKOKI",  "C44444E", "00QLLHH", "00MPHHH", "00EHHHE", "00UHHHUGG",
    "00FHHHF11", "00MPGGG", "00FGE1U",   "88S8896",  "00HHHJD", "00HHHA4", "00HHLLA", "00HA4AH", "00HHHHF1E",
    "00V248V",   "2448442", "4444444",   "8442448",  "008L2",
};

void fx_font_glyph(char c, unsigned char rows[FX_FONT_HEIGHT]) {
    const char *p = glyphs[(c < ' ' || c > '~' ? '?' : c) - ' '];
    memset(rows, 0, FX_FONT_HEIGHT);
    for (int i = 0; p[i]; i++)
        rows[i] = (unsigned char)(p[i] <= '9' ? p[i] - '0' : p[i] - 'A' + 10);
}
