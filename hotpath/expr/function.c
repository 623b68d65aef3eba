/* function.c: the table of functions and operators, and looking names up. Cold path, @thread any.
 *
 * Entries of one name stand together; the first whose rule takes the argument types wins, so narrow ones come first. */
#include "hotpath/expr/function.h"

#include <strings.h>

#include "hotpath/core/diag.h"
#include "hotpath/expr/kernel.h"

/* NULL rule: STRICT null in, null out; TOTAL the same and safe over any row; OPEN the kernel sees NULLs. */
#define STRICT .null_in_null_out = true
#define TOTAL  .null_in_null_out = true, .total = true
#define OPEN   .null_in_null_out = false

#define FN(nm, lo, hi, nulls, rule, kern, text)                                                                        \
	{                                                                                                              \
		.name = nm, .args_min = lo, .args_max = hi, nulls, .resolve = weir_resolve_##rule,                     \
		.kernel = weir_kernel_##kern, .doc = text                                                              \
	}
#define FN_PREPARED(nm, lo, hi, nulls, rule, kern, prep, text)                                                         \
	{                                                                                                              \
		.name = nm, .args_min = lo, .args_max = hi, nulls, .resolve = weir_resolve_##rule,                     \
		.kernel = weir_kernel_##kern, .prepare = weir_prepare_##prep, .doc = text                              \
	}

#define FN_DIGEST(nm, text)                                                                                            \
	{                                                                                                              \
		.name = nm, .args_min = 1, .args_max = 1, STRICT, .resolve = weir_resolve_s_x,                         \
		.kernel = weir_kernel_digest, .open = weir_open_digest, .close = weir_close_digest, .doc = text        \
	}
#define FN_REGEX(nm, lo, hi, rule, kern, text)                                                                         \
	{                                                                                                              \
		.name = nm, .args_min = lo, .args_max = hi, STRICT, .resolve = weir_resolve_##rule,                    \
		.prepare = weir_prepare_regex, .kernel = weir_kernel_##kern, .open = weir_open_regex,                  \
		.close = weir_close_regex, .doc = text                                                                 \
	}

/* clang-format off */
static const struct weir_function table[] = {
	FN("+", 2, 2, TOTAL, int_arith, add_int, "a + b"),
	FN("+", 2, 2, TOTAL, decimal_add, add_decimal, "a + b, exact"),
	FN("+", 2, 2, TOTAL, double_arith, add_double, "a + b"),
	FN("+", 2, 2, STRICT, time_add, time_add, "a time later by an interval; the sum of two intervals"),
	FN("-", 2, 2, TOTAL, int_arith, sub_int, "a - b"),
	FN("-", 2, 2, TOTAL, decimal_add, sub_decimal, "a - b, exact"),
	FN("-", 2, 2, TOTAL, double_arith, sub_double, "a - b"),
	FN("-", 2, 2, STRICT, time_sub, time_sub, "a time earlier by an interval; the interval between two times"),
	FN("*", 2, 2, TOTAL, int_arith, mul_int, "a * b"),
	FN("*", 2, 2, TOTAL, decimal_mul, mul_decimal, "a * b, exact up to 38 digits"),
	FN("*", 2, 2, TOTAL, double_arith, mul_double, "a * b"),
	FN("*", 2, 2, STRICT, interval_mul, interval_mul, "an interval n times"),
	FN("/", 2, 2, STRICT, int_arith, div_int, "a / b, towards zero"),
	FN("/", 2, 2, STRICT, decimal_div, div_decimal, "a / b, rounded half up"),
	FN("/", 2, 2, TOTAL, double_arith, div_double, "a / b; by zero an infinity or NaN, printed as NULL"),
	FN("%", 2, 2, STRICT, mod_int, mod_int, "the rest of a / b, with the sign of a"),
	FN("%", 2, 2, STRICT, decimal_mod, mod_decimal, "the rest of a / b, exact"),
	FN("%", 2, 2, TOTAL, double_arith, mod_double, "the rest of a / b"),
	FN("NEG", 1, 1, TOTAL, int_unary, neg_int, "-a"),
	FN("NEG", 1, 1, STRICT, decimal_unary, neg_decimal, "-a"),
	FN("NEG", 1, 1, TOTAL, double_unary, neg_double, "-a"),
	FN("NEG", 1, 1, STRICT, interval_unary, interval_neg, "-a"),

	FN("=", 2, 2, TOTAL, equal, eq, "whether a equals b"),
	FN("=", 2, 2, STRICT, equal_text, eq_text, "whether a equals b, byte by byte"),
	FN("<>", 2, 2, TOTAL, equal, ne, "whether a differs from b"),
	FN("<>", 2, 2, STRICT, equal_text, ne_text, "whether a differs from b"),
	FN("<", 2, 2, TOTAL, equal, lt, "whether a is less than b"),
	FN("<", 2, 2, STRICT, order_text, lt, "whether a sorts before b, byte by byte"),
	FN("<=", 2, 2, TOTAL, equal, le, "whether a is at most b"),
	FN("<=", 2, 2, STRICT, order_text, le, "whether a does not sort after b"),
	FN(">", 2, 2, TOTAL, equal, gt, "whether a is greater than b"),
	FN(">", 2, 2, STRICT, order_text, gt, "whether a sorts after b"),
	FN(">=", 2, 2, TOTAL, equal, ge, "whether a is at least b"),
	FN(">=", 2, 2, STRICT, order_text, ge, "whether a does not sort before b"),
	FN("NOT", 1, 1, TOTAL, logical_not, logical_not, "NOT a: UNKNOWN stays UNKNOWN"),
	FN("IS NULL", 1, 1, OPEN, is_null, is_null, "whether a is NULL"),
	FN("IS NOT NULL", 1, 1, OPEN, is_null, is_not_null, "whether a is not NULL"),
	FN("IS TRUE", 1, 1, OPEN, is_truth, is_true, "whether a is TRUE"),
	FN("IS NOT TRUE", 1, 1, OPEN, is_truth, is_not_true, "whether a is FALSE or UNKNOWN"),
	FN("IS FALSE", 1, 1, OPEN, is_truth, is_false, "whether a is FALSE"),
	FN("IS NOT FALSE", 1, 1, OPEN, is_truth, is_not_false, "whether a is TRUE or UNKNOWN"),
	FN("IS UNKNOWN", 1, 1, OPEN, is_truth, is_null, "whether a BOOLEAN is NULL"),
	FN("IS NOT UNKNOWN", 1, 1, OPEN, is_truth, is_not_null, "whether a BOOLEAN is not NULL"),
	FN("IS DISTINCT FROM", 2, 2, OPEN, distinct, distinct, "whether a and b differ; NULL equals NULL"),
	FN("IS NOT DISTINCT FROM", 2, 2, OPEN, distinct, not_distinct, "whether a equals b; NULL equals NULL"),
	FN_PREPARED("IN", 2, 255, OPEN, in, in, in, "whether a equals one of the values"),
	FN("IF", 3, 3, OPEN, if, if, "IF(condition, a, b): a where the condition is TRUE, else b"),
	FN("NULLIF", 2, 2, OPEN, nullif, nullif, "NULLIF(a, b): NULL where a equals b, else a"),
	FN("GREATEST", 1, 255, STRICT, greatest, greatest, "GREATEST(a, ...): the largest; NULL if one is NULL"),
	FN("LEAST", 1, 255, STRICT, greatest, least, "LEAST(a, ...): the smallest; NULL if one is NULL"),
	FN("ABS", 1, 1, STRICT, int_unary, abs_int, "ABS(n): n without its sign"),
	FN("ABS", 1, 1, STRICT, decimal_unary, abs_decimal, "ABS(d): d without its sign"),
	FN("ABS", 1, 1, TOTAL, double_unary, abs_double, "ABS(x): x without its sign"),
	FN("SIGN", 1, 1, TOTAL, int_unary, sign_int, "SIGN(n): -1, 0 or 1"),
	FN("SIGN", 1, 1, STRICT, decimal_unary, sign_decimal, "SIGN(d): -1, 0 or 1"),
	FN("SIGN", 1, 1, TOTAL, double_unary, sign_double, "SIGN(x): -1, 0 or 1"),
	FN("MOD", 2, 2, STRICT, mod_int, mod_int, "MOD(a, b): a % b"),
	FN("MOD", 2, 2, STRICT, decimal_mod, mod_decimal, "MOD(a, b): a % b"),
	FN("MOD", 2, 2, TOTAL, double_arith, mod_double, "MOD(a, b): a % b"),
	FN("ROUND", 1, 2, STRICT, round_int, round_int, "ROUND(n[, digits]): half up, digits may be negative"),
	FN("ROUND", 1, 2, STRICT, round_decimal, round_decimal, "ROUND(d[, digits]): half up"),
	FN("ROUND", 1, 2, STRICT, round_double, round_double, "ROUND(x[, digits]): half up of the shortest text of x"),
	FN("TRUNCATE", 1, 2, STRICT, round_int, truncate_int, "TRUNCATE(n[, digits]): towards zero"),
	FN("TRUNCATE", 1, 2, STRICT, round_decimal, truncate_decimal, "TRUNCATE(d[, digits]): towards zero"),
	FN("TRUNCATE", 1, 2, STRICT, round_double, truncate_double, "TRUNCATE(x[, digits]): towards zero"),
	FN("FLOOR", 1, 1, STRICT, round_int, round_int, "FLOOR(n): n"),
	FN("FLOOR", 1, 1, STRICT, floor_decimal, floor_decimal, "FLOOR(d): the largest integer not above d"),
	FN("FLOOR", 1, 1, STRICT, round_double, floor_double, "FLOOR(x): the largest integer not above x"),
	FN_PREPARED("FLOOR", 2, 2, STRICT, floor_time, floor_time, floor_time, "FLOOR(t TO unit): the start of its unit"),
	FN("CEIL", 1, 1, STRICT, round_int, round_int, "CEIL(n): n"),
	FN("CEIL", 1, 1, STRICT, floor_decimal, ceil_decimal, "CEIL(d): the smallest integer not below d"),
	FN("CEIL", 1, 1, STRICT, round_double, ceil_double, "CEIL(x): the smallest integer not below x"),
	FN_PREPARED("CEIL", 2, 2, STRICT, floor_time, ceil_time, floor_time, "CEIL(t TO unit): the next start of a unit"),
	FN("CEILING", 1, 1, STRICT, round_int, round_int, "CEILING(n): CEIL"),
	FN("CEILING", 1, 1, STRICT, floor_decimal, ceil_decimal, "CEILING(d): CEIL"),
	FN("CEILING", 1, 1, STRICT, round_double, ceil_double, "CEILING(x): CEIL"),
	FN_PREPARED("CEILING", 2, 2, STRICT, floor_time, ceil_time, floor_time, "CEILING(t TO unit): CEIL"),
	FN("POWER", 2, 2, STRICT, d_dd, power, "POWER(x, y): x to the power of y"),
	FN("SQRT", 1, 1, STRICT, d_d, sqrt, "SQRT(x): square root"),
	FN("EXP", 1, 1, STRICT, d_d, exp, "EXP(x): e to the power of x"),
	FN("LN", 1, 1, STRICT, d_d, ln, "LN(x): natural logarithm"),
	FN("LOG", 1, 1, STRICT, d_d, ln, "LOG(x): natural logarithm"),
	FN("LOG", 2, 2, STRICT, d_dd, log_base, "LOG(base, x): logarithm of x"),
	FN("LOG10", 1, 1, STRICT, d_d, log10, "LOG10(x): logarithm to base 10"),
	FN("LOG2", 1, 1, STRICT, d_d, log2, "LOG2(x): logarithm to base 2"),
	FN("SIN", 1, 1, STRICT, d_d, sin, "SIN(x): sine"),
	FN("COS", 1, 1, STRICT, d_d, cos, "COS(x): cosine"),
	FN("TAN", 1, 1, STRICT, d_d, tan, "TAN(x): tangent"),
	FN("COT", 1, 1, STRICT, d_d, cot, "COT(x): cotangent"),
	FN("ASIN", 1, 1, STRICT, d_d, asin, "ASIN(x): arc sine"),
	FN("ACOS", 1, 1, STRICT, d_d, acos, "ACOS(x): arc cosine"),
	FN("ATAN", 1, 1, STRICT, d_d, atan, "ATAN(x): arc tangent"),
	FN("ATAN2", 2, 2, STRICT, d_dd, atan2, "ATAN2(y, x): angle of the point (x, y)"),
	FN("SINH", 1, 1, STRICT, d_d, sinh, "SINH(x): hyperbolic sine"),
	FN("COSH", 1, 1, STRICT, d_d, cosh, "COSH(x): hyperbolic cosine"),
	FN("TANH", 1, 1, STRICT, d_d, tanh, "TANH(x): hyperbolic tangent"),
	FN("DEGREES", 1, 1, STRICT, d_d, degrees, "DEGREES(x): radians to degrees"),
	FN("RADIANS", 1, 1, STRICT, d_d, radians, "RADIANS(x): degrees to radians"),
	FN("PI", 0, 0, STRICT, d_none, pi, "PI(): 3.141592653589793"),
	FN("E", 0, 0, STRICT, d_none, e, "E(): 2.718281828459045"),

	FN("UPPER", 1, 1, STRICT, s_s, upper, "UPPER(s): s in upper case (Latin, Greek, Cyrillic)"),
	FN("LOWER", 1, 1, STRICT, s_s, lower, "LOWER(s): s in lower case (Latin, Greek, Cyrillic)"),
	FN("INITCAP", 1, 1, STRICT, s_s, initcap, "INITCAP(s): every word with a capital"),
	FN("TRIM", 1, 2, STRICT, s_ss, btrim, "TRIM([BOTH|LEADING|TRAILING] [characters] FROM s), TRIM(s): without blanks"),
	FN_PREPARED("TRIM", 3, 3, STRICT, s_sss, trim, trim, "TRIM(mode, characters, s)"),
	FN("BTRIM", 1, 2, STRICT, s_ss, btrim, "BTRIM(s[, characters]): without them at both ends"),
	FN("LTRIM", 1, 2, STRICT, s_ss, ltrim, "LTRIM(s[, characters]): without them at the start"),
	FN("RTRIM", 1, 2, STRICT, s_ss, rtrim, "RTRIM(s[, characters]): without them at the end"),
	FN("SUBSTRING", 2, 3, STRICT, s_si, substring, "SUBSTRING(s FROM start [FOR count]): characters from 1; negative from the end"),
	FN("SUBSTR", 2, 3, STRICT, s_si, substring, "SUBSTR(s, start[, count]): SUBSTRING"),
	FN("LEFT", 2, 2, STRICT, s_si, left, "LEFT(s, n): the first n characters"),
	FN("RIGHT", 2, 2, STRICT, s_si, right, "RIGHT(s, n): the last n characters"),
	FN("CONCAT", 1, 255, STRICT, s_a, concat, "CONCAT(a, ...): the texts together; NULL if one is NULL"),
	FN("CONCAT_WS", 1, 255, OPEN, s_as, concat_ws, "CONCAT_WS(separator, a, ...): joined; NULLs are left out"),
	FN("||", 2, 2, STRICT, s_a, concat, "a || b: the texts together"),
	FN("||", 2, 2, STRICT, y_yy, concat, "a || b: the bytes together"),
	FN("CHAR_LENGTH", 1, 1, STRICT, int_s, char_length, "CHAR_LENGTH(s): characters"),
	FN("CHARACTER_LENGTH", 1, 1, STRICT, int_s, char_length, "CHARACTER_LENGTH(s): characters"),
	FN("OCTET_LENGTH", 1, 1, STRICT, int_x, octet_length, "OCTET_LENGTH(s): bytes"),
	FN("POSITION", 2, 3, STRICT, int_ssi, position, "POSITION(part IN s): where it begins, from 1; 0: nowhere"),
	FN("LOCATE", 2, 3, STRICT, int_ssi, position, "LOCATE(part, s[, from]): where it begins, from 1; 0: nowhere"),
	FN("INSTR", 2, 2, STRICT, int_ssi, instr, "INSTR(s, part): where it begins, from 1; 0: nowhere"),
	FN("STARTSWITH", 2, 2, STRICT, bool_ss, starts_with, "STARTSWITH(s, prefix)"),
	FN("ENDSWITH", 2, 2, STRICT, bool_ss, ends_with, "ENDSWITH(s, suffix)"),
	FN("REPLACE", 3, 3, STRICT, s_sss, replace, "REPLACE(s, from, to): every from replaced"),
	FN("OVERLAY", 3, 4, STRICT, s_ssii, overlay, "OVERLAY(s PLACING with FROM start [FOR count])"),
	FN("SPLIT_INDEX", 3, 3, STRICT, s_ssi, split_index, "SPLIT_INDEX(s, separator, n): part n, from 0; NULL: none"),
	FN("LPAD", 3, 3, STRICT, s_sis, lpad, "LPAD(s, n, fill): n characters, filled at the left"),
	FN("RPAD", 3, 3, STRICT, s_sis, rpad, "RPAD(s, n, fill): n characters, filled at the right"),
	FN("REPEAT", 2, 2, STRICT, s_si, repeat, "REPEAT(s, n): s n times"),
	FN("REVERSE", 1, 1, STRICT, s_s, reverse, "REVERSE(s): the characters backwards"),
	FN("ASCII", 1, 1, STRICT, int_s, ascii, "ASCII(s): the first byte as a number"),
	FN("CHR", 1, 1, STRICT, s_i, chr, "CHR(n): the character of code n modulo 256"),
	FN("BIN", 1, 1, STRICT, s_i, bin, "BIN(n): binary digits"),
	FN("HEX", 1, 1, STRICT, s_i, hex_int, "HEX(n): hexadecimal digits"),
	FN("HEX", 1, 1, STRICT, s_x, hex_text, "HEX(s): the bytes in hexadecimal"),
	FN("UNHEX", 1, 1, STRICT, y_s, unhex, "UNHEX(s): the bytes of hexadecimal text; NULL: none"),
	FN("TO_BASE64", 1, 1, STRICT, s_x, to_base64, "TO_BASE64(s): base64"),
	FN("FROM_BASE64", 1, 1, STRICT, s_s, from_base64, "FROM_BASE64(s): the text of base64"),
	FN_PREPARED("ENCODE", 2, 2, STRICT, y_ss, encode, charset, "ENCODE(s, charset): the bytes of s"),
	FN_PREPARED("DECODE", 2, 2, STRICT, s_ys, decode, charset, "DECODE(bytes, charset): the text of bytes"),
	FN_DIGEST("MD5", "MD5(s): the digest in hexadecimal"),
	FN_DIGEST("SHA1", "SHA1(s): the digest in hexadecimal"),
	FN_DIGEST("SHA224", "SHA224(s): the digest in hexadecimal"),
	FN_DIGEST("SHA256", "SHA256(s): the digest in hexadecimal"),
	FN_DIGEST("SHA384", "SHA384(s): the digest in hexadecimal"),
	FN_DIGEST("SHA512", "SHA512(s): the digest in hexadecimal"),
	FN_PREPARED("LIKE", 2, 3, STRICT, bool_ss, like, like, "s LIKE pattern [ESCAPE c]: % any text, _ one character"),
	FN_REGEX("REGEXP", 2, 2, bool_ss, regexp, "REGEXP(s, pattern): whether the pattern is found in s"),
	FN_REGEX("RLIKE", 2, 2, bool_ss, regexp, "s RLIKE pattern: REGEXP"),
	FN_REGEX("REGEXP_EXTRACT", 2, 3, s_ssi, regexp_extract, "REGEXP_EXTRACT(s, pattern[, group]): what matched; NULL: nothing"),
	FN_REGEX("REGEXP_REPLACE", 3, 3, s_sss_null, regexp_replace, "REGEXP_REPLACE(s, pattern, with): every match replaced by that text as it is"),

	FN_PREPARED("EXTRACT", 2, 2, STRICT, extract, extract, extract, "EXTRACT(unit FROM t)"),
	FN("YEAR", 1, 1, STRICT, i_t, year, "YEAR(t)"),
	FN("QUARTER", 1, 1, STRICT, i_t, quarter, "QUARTER(t): 1 to 4"),
	FN("MONTH", 1, 1, STRICT, i_t, month, "MONTH(t): 1 to 12"),
	FN("WEEK", 1, 1, STRICT, i_t, week, "WEEK(t): ISO week, 1 to 53"),
	FN("DAYOFYEAR", 1, 1, STRICT, i_t, day_of_year, "DAYOFYEAR(t): 1 to 366"),
	FN("DAYOFMONTH", 1, 1, STRICT, i_t, day_of_month, "DAYOFMONTH(t): 1 to 31"),
	FN("DAYOFWEEK", 1, 1, STRICT, i_t, day_of_week, "DAYOFWEEK(t): 1 Sunday to 7 Saturday"),
	FN("HOUR", 1, 1, STRICT, i_t, hour, "HOUR(t): 0 to 23"),
	FN("MINUTE", 1, 1, STRICT, i_t, minute, "MINUTE(t): 0 to 59"),
	FN("SECOND", 1, 1, STRICT, i_t, second, "SECOND(t): 0 to 59"),
	FN_PREPARED("TIMESTAMPADD", 3, 3, STRICT, timestamp_add, timestamp_add, timestamp_add, "TIMESTAMPADD(unit, n, t): t later by n units"),
	FN_PREPARED("TIMESTAMPDIFF", 3, 3, STRICT, timestamp_diff, timestamp_diff, timestamp_add, "TIMESTAMPDIFF(unit, a, b): whole units from a to b"),
	FN_PREPARED("TO_TIMESTAMP", 1, 2, STRICT, timestamp_s, to_timestamp, pattern_1, "TO_TIMESTAMP(s[, pattern]): NULL where s does not match"),
	FN_PREPARED("TO_TIMESTAMP_LTZ", 1, 2, STRICT, ltz_number, ltz_number, ltz_number, "TO_TIMESTAMP_LTZ(n[, p]): n counts seconds (0), ms (3), us (6), ns (9)"),
	FN_PREPARED("TO_TIMESTAMP_LTZ", 1, 3, STRICT, ltz_s, ltz_text, ltz_text, "TO_TIMESTAMP_LTZ(s[, pattern[, zone]])"),
	FN_PREPARED("UNIX_TIMESTAMP", 0, 0, STRICT, clock, clock, clock, "UNIX_TIMESTAMP(): refused, reads the clock"),
	FN_PREPARED("UNIX_TIMESTAMP", 1, 2, STRICT, i_ss, unix_timestamp, pattern_1, "UNIX_TIMESTAMP(s[, pattern]): seconds since 1970"),
	FN_PREPARED("FROM_UNIXTIME", 1, 2, STRICT, s_is, from_unixtime, pattern_1, "FROM_UNIXTIME(seconds[, pattern]): text, in UTC"),
	FN_PREPARED("DATE_FORMAT", 2, 2, STRICT, date_format, date_format, pattern_1, "DATE_FORMAT(t, pattern): text by Java's pattern"),
	FN_PREPARED("TO_DATE", 1, 2, STRICT, date_s, to_date, pattern_1, "TO_DATE(s[, pattern]): NULL where s does not match"),
	FN_PREPARED("CONVERT_TZ", 3, 3, STRICT, s_sss_null, convert_tz, convert_tz, "CONVERT_TZ(s, from, to): the local time in another zone"),
	FN("$TUMBLE_START", 3, 3, STRICT, tumble_start, tumble_start, "the start of a tumbling window (internal)"),
	FN_PREPARED("CURRENT_TIMESTAMP", 0, 1, STRICT, clock, clock, clock, "refused: reads the clock"),
	FN_PREPARED("CURRENT_DATE", 0, 0, STRICT, clock, clock, clock, "refused: reads the clock"),
	FN_PREPARED("CURRENT_TIME", 0, 1, STRICT, clock, clock, clock, "refused: reads the clock"),
	FN_PREPARED("CURRENT_ROW_TIMESTAMP", 0, 0, STRICT, clock, clock, clock, "refused: reads the clock"),
	FN_PREPARED("LOCALTIME", 0, 1, STRICT, clock, clock, clock, "refused: reads the clock"),
	FN_PREPARED("LOCALTIMESTAMP", 0, 1, STRICT, clock, clock, clock, "refused: reads the clock"),
	FN_PREPARED("NOW", 0, 0, STRICT, clock, clock, clock, "refused: reads the clock"),
	FN_PREPARED("PROCTIME", 0, 0, STRICT, clock, clock, clock, "refused: reads the clock"),
	FN_PREPARED("UUID", 0, 0, STRICT, clock, clock, clock, "refused: another value each time"),
	FN_PREPARED("RAND", 0, 1, STRICT, clock, clock, clock, "refused: another value each time"),
	FN_PREPARED("RAND_INTEGER", 1, 2, STRICT, clock, clock, clock, "refused: another value each time"),

	FN_PREPARED("JSON_VALUE", 2, 2, STRICT, s_ss_null, json_value, json_path, "JSON_VALUE(json, path): a scalar as text; NULL: none"),
	FN_PREPARED("JSON_QUERY", 2, 2, STRICT, s_ss_null, json_query, json_path, "JSON_QUERY(json, path): an object or array as text; NULL: none"),
	FN_PREPARED("JSON_EXISTS", 2, 2, STRICT, bool_ss, json_exists, json_path, "JSON_EXISTS(json, path): whether there is a value, and not null"),
	FN("IS_JSON", 1, 1, STRICT, bool_s, is_json, "IS_JSON(s): whether s is JSON"),
	FN("IS JSON", 1, 1, STRICT, bool_s, is_json, "s IS JSON"),
	FN("IS JSON OBJECT", 1, 1, STRICT, bool_s, is_json_object, "s IS JSON OBJECT"),
	FN("IS JSON ARRAY", 1, 1, STRICT, bool_s, is_json_array, "s IS JSON ARRAY"),
	FN("IS JSON SCALAR", 1, 1, STRICT, bool_s, is_json_scalar, "s IS JSON SCALAR: a string, number, truth value or null"),
	FN("ITEM", 2, 2, STRICT, item, item, "array[n] from 1, map[key]; NULL: none"),
	FN("FIELD", 2, 2, STRICT, field, field, "row.name"),
	FN("CARDINALITY", 1, 1, STRICT, int_j, cardinality, "CARDINALITY(a): elements of an array or map"),
	FN("ELEMENT", 1, 1, STRICT, element, element, "ELEMENT(array): its only element"),
	FN("ARRAY_CONTAINS", 2, 2, STRICT, array_contains, array_contains, "ARRAY_CONTAINS(array, v): whether v is one of its elements"),
};
/* clang-format on */

/* Functions of many rows: they have no kernels. */
static const struct weir_function_note notes[] = {
	{"COUNT", WEIR_FUNCTION_AGGREGATE, "COUNT(*), COUNT([DISTINCT] x): rows, rows whose x is not NULL; also OVER"},
	{"SUM", WEIR_FUNCTION_AGGREGATE, "SUM(x): the sum; also OVER"},
	{"MIN", WEIR_FUNCTION_AGGREGATE, "MIN(x): the least value; also OVER"},
	{"MAX", WEIR_FUNCTION_AGGREGATE, "MAX(x): the greatest value; also OVER"},
	{"AVG", WEIR_FUNCTION_AGGREGATE, "AVG(x): the mean, of whole numbers a whole one; also OVER"},
	{"FIRST_VALUE", WEIR_FUNCTION_AGGREGATE, "FIRST_VALUE(x): the first value; also OVER"},
	{"LAST_VALUE", WEIR_FUNCTION_AGGREGATE, "LAST_VALUE(x): the last value; also OVER"},
	{"ARRAY_AGG", WEIR_FUNCTION_AGGREGATE, "ARRAY_AGG(x): the values as an array"},
	{"LAG", WEIR_FUNCTION_OVER, "LAG(x[, n[, default]]) OVER (...): x of the row n rows before, 1 unless given"},
	{"ROW_NUMBER", WEIR_FUNCTION_OVER, "ROW_NUMBER() OVER (...): the row's number in its partition, from 1"},
};

bool weir_function_find(const char *name, const struct weir_function **first, uint32_t *count)
{
	for (uint32_t i = 0; i < WEIR_COUNT_OF(table); i++) {
		if (strcasecmp(table[i].name, name) != 0)
			continue;
		uint32_t n = 1;
		while (i + n < WEIR_COUNT_OF(table) && strcmp(table[i].name, table[i + n].name) == 0)
			n++;
		*first = &table[i];
		*count = n;
		return true;
	}
	return false;
}

const char *weir_function_nearest(const char *name)
{
	const char *names[WEIR_COUNT_OF(table) + WEIR_COUNT_OF(notes)];
	char upper[64];
	size_t count = 0, bytes = 0;
	for (; name[bytes] != 0 && bytes < sizeof upper; bytes++)
		upper[bytes] = (char)(name[bytes] >= 'a' && name[bytes] <= 'z' ? name[bytes] - 32 : name[bytes]);
	for (uint32_t i = 0; i < WEIR_COUNT_OF(table); i++) {
		char c = table[i].name[0];
		if (c >= 'A' && c <= 'Z' && strchr(table[i].name, ' ') == NULL &&
		    (count == 0 || strcmp(names[count - 1], table[i].name) != 0))
			names[count++] = table[i].name;
	}
	for (uint32_t i = 0; i < WEIR_COUNT_OF(notes); i++)
		names[count++] = notes[i].name;
	return weir_nearest_name(upper, bytes, names, count);
}

const struct weir_function *weir_function_at(uint32_t i)
{
	return i < WEIR_COUNT_OF(table) ? &table[i] : NULL;
}

const struct weir_function_note *weir_function_note_at(uint32_t i)
{
	return i < WEIR_COUNT_OF(notes) ? &notes[i] : NULL;
}

bool weir_name_is_aggregate(const char *name)
{
	for (uint32_t i = 0; i < WEIR_COUNT_OF(notes); i++)
		if (notes[i].kind == WEIR_FUNCTION_AGGREGATE && strcasecmp(name, notes[i].name) == 0)
			return true;
	return false;
}
