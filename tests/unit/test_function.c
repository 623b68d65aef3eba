/* test_function.c: unit tests of hotpath/expr/function.c and the kernels, as SQL texts and what they are. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <strings.h>

#include "tests/support/exprs.h"

#define CHECK(...)                                                                                                     \
	do {                                                                                                           \
		static const struct x_case cases[] = {__VA_ARGS__};                                                    \
		x_check(cases, WEIR_COUNT_OF(cases), false);                                                           \
	} while (0)
#define CHECK_TYPED(...)                                                                                               \
	do {                                                                                                           \
		static const struct x_case cases[] = {__VA_ARGS__};                                                    \
		x_check(cases, WEIR_COUNT_OF(cases), true);                                                            \
	} while (0)

/* clang-format off */
static void test_arithmetic(void **state)
{
	(void)state;
	CHECK_TYPED({"1 + 2", "INT: 3"}, {"7 - 9", "INT: -2"}, {"6 * 7", "INT: 42"}, {"7 / 2", "INT: 3"}, {"-7 / 2", "INT: -3"},
	            {"7 % 3", "INT: 1"}, {"-7 % 3", "INT: -1"}, {"MOD(7, -3)", "INT: 1"}, {"-(3)", "INT: -3"},
	            {"3000000000 + 1", "BIGINT: 3000000001"}, {"1 + 3000000000", "BIGINT: 3000000001"},
	            {"CAST(1 AS TINYINT) + CAST(2 AS SMALLINT)", "SMALLINT: 3"},
	            {"1e0 + 1", "DOUBLE: 2"}, {"1e0 / 4", "DOUBLE: 0.25"}, {"1e0 / 0", "DOUBLE: Infinity"},
	            {"-1e0 / 0", "DOUBLE: -Infinity"}, {"5.5e0 % 2", "DOUBLE: 1.5"}, {"NULL + 1", "INT: NULL"},
	            {"CAST(0.1 AS FLOAT) + CAST(0.2 AS FLOAT)", "FLOAT: 0.3"},
	            {"1.5 + 2.25", "DECIMAL(4, 2): 3.75"}, {"1.5 - 2.25", "DECIMAL(4, 2): -0.75"},
	            {"1.5 * 2.25", "DECIMAL(6, 3): 3.375"}, {"1.00 / 3.00", "DECIMAL(9, 6): 0.333333"},
	            {"2.00 / 3", "DECIMAL(14, 13): 0.6666666666667"}, {"5.5 % 2", "DECIMAL(2, 1): 1.5"}, {"1.5 + 1", "DECIMAL(12, 1): 2.5"});
	CHECK({"2147483647 + 1", "!overflow"}, {"-2147483647 - 2", "!overflow"}, {"65536 * 65536", "!overflow"},
	      {"9223372036854775807 + 1", "!overflow"}, {"9223372036854775807 * 2", "!overflow"},
	      {"CAST(-128 AS TINYINT) - CAST(1 AS TINYINT)", "!overflow"}, {"1 / 0", "!expr"}, {"1 % 0", "!expr"},
	      {"1.0 / 0", "!expr"}, {"1.0 % 0.0", "!expr"}, {"-CAST(-128 AS TINYINT)", "!overflow"},
	      {"ABS(CAST(-128 AS TINYINT))", "!overflow"}, {"CAST(-128 AS TINYINT) / CAST(-1 AS TINYINT)", "!overflow"});
	CHECK({"ABS(-5)", "5"}, {"ABS(-1.50)", "1.50"}, {"ABS(-2e0)", "2"}, {"SIGN(-3)", "-1"}, {"SIGN(0)", "0"},
	      {"SIGN(-1.50)", "-1.00"}, {"SIGN(2e0)", "1"});
}

static void test_comparison(void **state)
{
	(void)state;
	CHECK({"1 = 1.0", "TRUE"}, {"1 < 1.5", "TRUE"}, {"2 >= 3", "FALSE"}, {"1 <> NULL", "NULL"}, {"NULL = NULL", "NULL"},
	      {"-0e0 = 0e0", "TRUE"}, {"0e0 / 0 = 0e0 / 0", "FALSE"}, {"1.10 = 1.1", "TRUE"}, {"'a' < 'b'", "TRUE"},
	      {"'a' < 'B'", "FALSE"}, {"'ab' > 'a'", "TRUE"}, {"'a' = 'a '", "FALSE"}, {"'é' > 'z'", "TRUE"}, {"TRUE > FALSE", "TRUE"},
	      {"DATE '2026-01-02' > DATE '2026-01-01'", "TRUE"},
	      {"TIMESTAMP '2026-01-01 00:00:00' = DATE '2026-01-01'", "TRUE"},
	      {"TIMESTAMP '2026-01-01 00:00:00.123' < TIMESTAMP '2026-01-01 00:00:00.123001'", "TRUE"},
	      {"INTERVAL '1' HOUR = INTERVAL '60' MINUTE", "TRUE"},
	      {"12345678901234567890.5 > 12345678901234567890", "TRUE"});
	CHECK({"NULL IS NULL", "TRUE"}, {"1 IS NOT NULL", "TRUE"}, {"NULL IS DISTINCT FROM NULL", "FALSE"},
	      {"1 IS DISTINCT FROM NULL", "TRUE"}, {"1 IS NOT DISTINCT FROM 1", "TRUE"}, {"(1 = 1) IS TRUE", "TRUE"},
	      {"(NULL = 1) IS UNKNOWN", "TRUE"}, {"(NULL = 1) IS NOT FALSE", "TRUE"}, {"NOT (1 = 2)", "TRUE"}, {"NOT (NULL = 2)", "NULL"});
	CHECK({"2 IN (1, 2, 3)", "TRUE"}, {"4 IN (1, 2, 3)", "FALSE"}, {"4 IN (1, NULL)", "NULL"}, {"1 IN (1, NULL)", "TRUE"},
	      {"NULL IN (1)", "NULL"}, {"'b' IN ('a', 'b')", "TRUE"}, {"'c' NOT IN ('a', 'b')", "TRUE"}, {"1.50 IN (1, 1.5)", "TRUE"},
	      {"1e0 IN (1, 2)", "TRUE"}, {"9 IN (1,2,3,4,5,6,7,8,9,10)", "TRUE"}, {"0 IN (1,2,3,4,5,6,7,8,9,10)", "FALSE"},
	      {"5 BETWEEN 1 AND 5", "TRUE"}, {"NULLIF(1, 1)", "NULL"}, {"NULLIF(1, 2)", "1"}, {"NULLIF('a', 'b')", "a"},
	      {"IF(1 = 1, 'x', 'y')", "x"}, {"IF(NULL = 1, 'x', 'y')", "y"}, {"IF(1 = 2, 1 / 0, 5)", "5"},
	      {"GREATEST(1, 3, 2)", "3"}, {"LEAST(1.5, 2)", "1.5"}, {"GREATEST('a', 'c', 'b')", "c"}, {"GREATEST(1, NULL)", "NULL"},
	      {"COALESCE(NULL, 2, 1 / 0)", "2"}, {"CASE WHEN 1 = 2 THEN 1 / 0 ELSE 7 END", "7"},
	      {"FALSE AND 1 / 0 = 1", "FALSE"}, {"TRUE OR 1 / 0 = 1", "TRUE"}, {"TRUE AND 1 / 0 = 1", "!expr"});
}

static void test_strings(void **state)
{
	(void)state;
	CHECK({"UPPER('aBc')", "ABC"}, {"UPPER('straße éà ж')", "STRAßE ÉÀ Ж"}, {"LOWER('ÀÉ ЖΩ')", "àé жω"}, {"INITCAP('hello wORLD')", "Hello World"},
	      {"TRIM('  a b ')", "a b"}, {"TRIM(BOTH 'x' FROM 'xxaxx')", "a"}, {"TRIM(LEADING 'x' FROM 'xxaxx')", "axx"},
	      {"TRIM(TRAILING 'x' FROM 'xxaxx')", "xxa"}, {"LTRIM('  a ')", "a "}, {"RTRIM(' a  ')", " a"}, {"BTRIM('xyaxy', 'xy')", "a"},
	      {"TRIM(BOTH 'é' FROM 'éaé')", "a"}, {"TRIM('   ')", ""});
	CHECK({"SUBSTRING('hello' FROM 2)", "ello"}, {"SUBSTRING('hello' FROM 2 FOR 3)", "ell"}, {"SUBSTRING('héllo', 2, 1)", "é"},
	      {"SUBSTRING('hello', -3)", "llo"}, {"SUBSTRING('hello', -9)", ""}, {"SUBSTRING('hello', 0, 2)", "he"},
	      {"SUBSTRING('hello', 9)", ""}, {"SUBSTRING('hello', 2, -1)", "NULL"}, {"SUBSTR('hello', 4, 99)", "lo"},
	      {"LEFT('héllo', 2)", "hé"}, {"RIGHT('héllo', 4)", "éllo"}, {"LEFT('a', -1)", ""}, {"RIGHT('abc', 9)", "abc"});
	CHECK({"CONCAT('a', 'b', 'c')", "abc"}, {"CONCAT('a', NULL)", "NULL"}, {"'a' || 'b' || 'c'", "abc"}, {"CONCAT_WS('-', 'a', NULL, 'b')", "a-b"},
	      {"CONCAT_WS('-', NULL, 'b')", "b"}, {"CONCAT_WS(NULL, 'a')", "NULL"}, {"CONCAT_WS('-', NULL, NULL)", ""}, {"CONCAT_WS('-', '', 'a')", "-a"},
	      {"'n' || 5", "n5"}, {"CHAR_LENGTH('héllo')", "5"}, {"CHARACTER_LENGTH('')", "0"}, {"OCTET_LENGTH('é')", "2"},
	      {"POSITION('l' IN 'héllo')", "3"}, {"POSITION('z' IN 'hello')", "0"}, {"LOCATE('l', 'hello', 4)", "4"}, {"LOCATE('', 'a')", "1"},
	      {"LOCATE('l', 'hello', 0)", "0"}, {"INSTR('hello', 'lo')", "4"}, {"STARTSWITH('hello', 'he')", "TRUE"}, {"ENDSWITH('hello', 'he')", "FALSE"},
	      {"REPLACE('banana', 'an', 'AN!')", "bAN!AN!a"}, {"REPLACE('aaa', 'aa', 'b')", "ba"}, {"REPLACE('abc', '', 'x')", "abc"},
	      {"OVERLAY('xxxxxtest' PLACING 'xxxx' FROM 6)", "xxxxxxxxx"}, {"OVERLAY('xxxxxtest' PLACING 'xxxx' FROM 6 FOR 2)", "xxxxxxxxxst"},
	      {"OVERLAY('abc' PLACING 'z' FROM 9)", "abc"}, {"SPLIT_INDEX('a,b,c', ',', 1)", "b"}, {"SPLIT_INDEX('a,b,c', ',', 3)", "NULL"},
	      {"SPLIT_INDEX('a,b', ',', -1)", "NULL"}, {"SPLIT_INDEX('a||b', '||', 1)", "b"}, {"SPLIT_INDEX(',a', ',', 0)", ""}, {"SPLIT_INDEX('', ',', 0)", "NULL"});
	CHECK({"LPAD('hi', 4, '?!')", "?!hi"}, {"LPAD('hi', 1, 'x')", "h"}, {"RPAD('hi', 5, 'é')", "hiééé"}, {"LPAD('a', 3, '')", "NULL"},
	      {"RPAD('a', -1, 'x')", "NULL"}, {"REPEAT('ab', 3)", "ababab"}, {"REPEAT('ab', 0)", ""}, {"REPEAT('ab', 99999999)", "!expr"},
	      {"REVERSE('aéb')", "béa"}, {"ASCII('A')", "65"}, {"ASCII('')", "0"}, {"CHR(65)", "A"}, {"CHR(233)", "é"}, {"BIN(10)", "1010"},
	      {"BIN(-1)", "1111111111111111111111111111111111111111111111111111111111111111"}, {"HEX(255)", "FF"}, {"HEX('aé')", "61C3A9"},
	      {"DECODE(UNHEX('616'), 'UTF-8')", "\006\026"}, {"UNHEX('zz')", "NULL"}, {"TO_BASE64('hello')", "aGVsbG8="}, {"FROM_BASE64('aGVsbG8=')", "hello"},
	      {"FROM_BASE64('!!')", "!expr"}, {"FROM_BASE64('/w==')", "!expr"}, {"DECODE(ENCODE('é', 'ISO-8859-1'), 'ISO-8859-1')", "é"},
	      {"DECODE(ENCODE('aé', 'US-ASCII'), 'UTF-8')", "a?"}, {"DECODE(ENCODE('é', 'ISO-8859-1'), 'UTF-8')", "!expr"});
	CHECK({"MD5('')", "d41d8cd98f00b204e9800998ecf8427e"}, {"MD5('abc')", "900150983cd24fb0d6963f7d28e17f72"},
	      {"SHA1('abc')", "a9993e364706816aba3e25717850c26c9cd0d89d"},
	      {"SHA224('abc')", "23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7"},
	      {"SHA256('abc')", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
	      {"CHAR_LENGTH(SHA384('abc'))", "96"}, {"CHAR_LENGTH(SHA512('abc'))", "128"}, {"MD5(CAST(NULL AS STRING))", "NULL"});
}

static void test_like_and_regex(void **state)
{
	(void)state;
	CHECK({"'hello' LIKE 'hello'", "TRUE"}, {"'hello' LIKE 'he%'", "TRUE"}, {"'hello' LIKE '%lo'", "TRUE"}, {"'hello' LIKE 'he%lo'", "TRUE"}, {"'helo' LIKE 'hel%lo'", "FALSE"}, {"'hexxx' LIKE 'he%lo'", "FALSE"}, {"'hello' LIKE '%ell%'", "TRUE"},
	      {"'hello' LIKE 'h_llo'", "TRUE"}, {"'héllo' LIKE 'h_llo'", "TRUE"}, {"'hello' LIKE 'h%l%o'", "TRUE"}, {"'hello' LIKE 'H%'", "FALSE"},
	      {"'' LIKE '%'", "TRUE"}, {"'' LIKE '_'", "FALSE"}, {"'a' LIKE ''", "FALSE"}, {"'100%' LIKE '100!%' ESCAPE '!'", "TRUE"},
	      {"'100x' LIKE '100!%' ESCAPE '!'", "FALSE"}, {"'a_b' LIKE 'a\\_b'", "TRUE"}, {"'axb' LIKE 'a\\_b'", "FALSE"}, {"'a\\b' LIKE 'a\\b'", "TRUE"},
	      {"'abcabd' LIKE '%ab_'", "TRUE"}, {"'aaaaaaaaab' LIKE '%a_a%b'", "TRUE"}, {"'x' NOT LIKE 'y'", "TRUE"}, {"NULL LIKE 'a'", "NULL"},
	      {"'a' LIKE 'a!' ESCAPE '!'", "error"}, {"'a' LIKE 'a' ESCAPE 'ab'", "error"});
	CHECK({"REGEXP('abc123', '[0-9]+')", "TRUE"}, {"REGEXP('abc', '^[0-9]')", "FALSE"}, {"REGEXP_EXTRACT('foothebar', 'foo(.*?)(bar)', 2)", "bar"},
	      {"REGEXP_EXTRACT('foothebar', 'foo(.*?)(bar)')", "foothebar"}, {"REGEXP_EXTRACT('x', 'y')", "NULL"}, {"REGEXP_EXTRACT('x', '(x)', 7)", "NULL"},
	      {"REGEXP_EXTRACT('x', '(x)|(y)', 2)", "NULL"}, {"REGEXP_REPLACE('foobar', 'oo|ar', '')", "fb"}, {"REGEXP_REPLACE('abc', '(b)', '[$1]')", "a[$1]c"},
	      {"REGEXP_REPLACE('abc', 'b*', '-')", "-a--c-"}, {"REGEXP_REPLACE('éa', '', '-')", "-é-a-"}, {"REGEXP_REPLACE('a', 'a', '$9')", "$9"},
	      {"REGEXP_REPLACE('a', 'a', '\\$1')", "\\$1"}, {"REGEXP('a', '(')", "error"}, {"REGEXP_EXTRACT('h\u00e9', 'h(.)$', 1)", "é"},
	      {"REGEXP('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab', '^(a+)+$')", "!expr"});
}

static void test_math(void **state)
{
	(void)state;
	CHECK_TYPED({"ROUND(2.675e0, 2)", "DOUBLE: 2.68"}, {"ROUND(-2.5e0)", "DOUBLE: -3"}, {"ROUND(1234.5e0, -2)", "DOUBLE: 1200"}, {"ROUND(1e300, 2)", "DOUBLE: 1e300"},
	            {"ROUND(1.2345, 2)", "DECIMAL(4, 2): 1.23"}, {"ROUND(1.235, 2)", "DECIMAL(4, 2): 1.24"}, {"ROUND(9.99, 1)", "DECIMAL(3, 1): 10.0"}, {"ROUND(-1.5)", "DECIMAL(2, 0): -2"},
	            {"ROUND(155.5, -1)", "DECIMAL(4, 0): 160"}, {"ROUND(155, -1)", "INT: 160"}, {"ROUND(2147483647, -1)", "INT: !overflow"}, {"ROUND(5, 3)", "INT: 5"},
	            {"TRUNCATE(42.345, 2)", "DECIMAL(5, 2): 42.34"}, {"TRUNCATE(-1.999e0, 1)", "DOUBLE: -1.9"}, {"TRUNCATE(159, -1)", "INT: 150"},
	            {"FLOOR(-1.5)", "DECIMAL(2, 0): -2"}, {"CEIL(-1.5)", "DECIMAL(2, 0): -1"}, {"FLOOR(1.5e0)", "DOUBLE: 1"}, {"CEILING(1.2e0)", "DOUBLE: 2"}, {"FLOOR(7)", "INT: 7"},
	            {"POWER(2, 10)", "DOUBLE: 1024"}, {"SQRT(16)", "DOUBLE: 4"}, {"SQRT(-1)", "DOUBLE: NaN"}, {"LN(1)", "DOUBLE: 0"}, {"LOG10(1000)", "DOUBLE: 3"}, {"LOG2(8)", "DOUBLE: 3"},
	            {"LOG(2, 8)", "DOUBLE: 3"}, {"EXP(0)", "DOUBLE: 1"}, {"SIN(0)", "DOUBLE: 0"}, {"COS(0)", "DOUBLE: 1"}, {"ATAN2(0, 1)", "DOUBLE: 0"}, {"DEGREES(PI())", "DOUBLE: 180"},
	            {"RADIANS(180)", "DOUBLE: 3.141592653589793"}, {"E()", "DOUBLE: 2.718281828459045"});
}

static void test_times(void **state)
{
	(void)state;
	CHECK({"EXTRACT(YEAR FROM DATE '2026-03-05')", "2026"}, {"YEAR(TIMESTAMP '1969-12-31 23:59:59')", "1969"}, {"QUARTER(DATE '2026-04-01')", "2"},
	      {"MONTH(DATE '2026-03-05')", "3"}, {"WEEK(DATE '2027-01-01')", "53"}, {"DAYOFYEAR(DATE '2024-12-31')", "366"}, {"DAYOFMONTH(DATE '2026-03-05')", "5"},
	      {"DAYOFWEEK(DATE '2026-11-29')", "1"}, {"HOUR(TIMESTAMP '1969-12-31 23:59:59')", "23"}, {"MINUTE(TIME '12:34:56')", "34"}, {"SECOND(TIMESTAMP '2026-01-01 00:00:59.9')", "59"},
	      {"EXTRACT(EPOCH FROM TIMESTAMP '1970-01-01 00:01:00')", "60"}, {"EXTRACT(CENTURY FROM DATE '2000-12-31')", "20"}, {"EXTRACT(DOW FROM DATE '2026-11-28')", "7"},
	      {"EXTRACT(MILLISECOND FROM TIMESTAMP '2026-01-01 00:00:01.250')", "250"}, {"EXTRACT(MICROSECOND FROM TIMESTAMP '2026-01-01 00:00:01.250')", "250000"},
	      {"TIMESTAMPDIFF(MONTH, DATE '1999-12-31', DATE '2024-02-29')", "290"}, {"TIMESTAMPDIFF(MONTH, DATE '2024-02-29', DATE '1999-12-31')", "-290"}, {"TIMESTAMPDIFF(MONTH, DATE '2026-01-31', DATE '2026-02-27')", "0"},
	      {"TIMESTAMPDIFF(MONTH, TIMESTAMP '2026-01-31 10:00:00', TIMESTAMP '2026-02-28 09:59:59')", "0"}, {"TIMESTAMPDIFF(YEAR, DATE '2024-02-29', DATE '2025-02-28')", "1"},
	      {"TO_TIMESTAMP('2024-2-9 3:4:5')", "2024-02-09 03:04:05.000"}, {"TO_TIMESTAMP('2024-2-9')", "2024-02-09 00:00:00.000"}, {"CAST('2024-2-9 3:4:5.1' AS TIMESTAMP(3))", "2024-02-09 03:04:05.100"}, {"CAST('2024-2-9' AS DATE)", "2024-02-09"},
	      {"LOCATE('', 'abc', 5)", "1"}, {"'{}' IS JSON", "TRUE"}, {"'{' IS NOT JSON", "TRUE"}, {"'[1]' IS JSON OBJECT", "FALSE"}, {"'[1]' IS JSON ARRAY", "TRUE"}, {"'[1]' IS NOT JSON SCALAR", "TRUE"}, {"' 1 ' IS JSON SCALAR", "TRUE"}, {"'{}' IS JSON VALUE", "TRUE"}, {"'{}' IS JSON OBJECT", "TRUE"}, {"'x' IS JSON SCALAR", "FALSE"}, {"CAST(NULL AS STRING) IS NOT JSON ARRAY", "TRUE"}, {"CAST(NULL AS STRING) IS JSON", "FALSE"}, {"CAST(NULL AS STRING) IS NOT JSON", "TRUE"}, {"INTERVAL '0.500' SECOND(6, 3)", "+0 00:00:00.500"}, {"EXTRACT(FORTNIGHT FROM DATE '2026-01-01')", "error"});
	CHECK({"FLOOR(TIMESTAMP '2026-03-05 12:34:56.789' TO MINUTE)", "2026-03-05 12:34:00.000"}, {"CEIL(TIMESTAMP '2026-03-05 12:34:56.789' TO HOUR)", "2026-03-05 13:00:00.000"},
	      {"CEIL(TIMESTAMP '2026-03-05 12:00:00' TO HOUR)", "2026-03-05 12:00:00"}, {"FLOOR(TIMESTAMP '1969-12-31 23:59:59' TO DAY)", "1969-12-31 00:00:00"},
	      {"FLOOR(DATE '2026-03-05' TO MONTH)", "2026-03-01"}, {"CEIL(DATE '2026-12-05' TO MONTH)", "2027-01-01"}, {"FLOOR(DATE '2026-08-05' TO QUARTER)", "2026-07-01"},
	      {"FLOOR(DATE '2026-08-05' TO YEAR)", "2026-01-01"}, {"FLOOR(DATE '2026-11-28' TO WEEK)", "2026-11-22"}, {"FLOOR(DATE '2026-11-29' TO WEEK)", "2026-11-29"});
	CHECK_TYPED({"TIMESTAMP '2026-01-31 00:00:00' + INTERVAL '1' MONTH", "TIMESTAMP(0): 2026-02-28 00:00:00"}, {"TIMESTAMP '2026-01-01 00:00:00' - INTERVAL '1' SECOND", "TIMESTAMP(0): 2025-12-31 23:59:59"},
	            {"INTERVAL '1' DAY + DATE '2026-02-28'", "DATE: 2026-03-01"}, {"DATE '2026-02-28' + INTERVAL '1' HOUR", "TIMESTAMP(3): 2026-02-28 01:00:00.000"},
	            {"DATE '2024-02-29' + INTERVAL '1' YEAR", "DATE: 2025-02-28"}, {"TIME '23:30:00' + INTERVAL '1' HOUR", "TIME(0): 00:30:00"},
	            {"TIMESTAMPADD(MONTH, 1, DATE '2026-01-31')", "DATE: 2026-02-28"}, {"TIMESTAMPADD(SECOND, -1, TIMESTAMP '1970-01-01 00:00:00')", "TIMESTAMP(0): 1969-12-31 23:59:59"},
	            {"TIMESTAMPADD(HOUR, 25, DATE '2026-01-01')", "TIMESTAMP(3): 2026-01-02 01:00:00.000"}, {"TIMESTAMPADD(DAY, 9223372036854775807, DATE '2026-01-01')", "DATE: !overflow"},
	            {"TIMESTAMPADD(SECOND, 9223372036854775807, TIMESTAMP '2026-01-01 00:00:00')", "TIMESTAMP(0): !overflow"},
	            {"TIMESTAMPDIFF(DAY, TIMESTAMP '2026-01-01 12:00:00', TIMESTAMP '2026-01-03 11:00:00')", "INT: 1"}, {"TIMESTAMPDIFF(MONTH, DATE '2026-01-31', DATE '2026-02-28')", "INT: 1"},
	            {"TIMESTAMPDIFF(MONTH, DATE '2026-03-15', DATE '2026-01-14')", "INT: -2"}, {"TIMESTAMPDIFF(YEAR, DATE '2020-02-29', DATE '2026-02-28')", "INT: 6"},
	            {"TIMESTAMPDIFF(SECOND, TIMESTAMP '1900-01-01 00:00:00', TIMESTAMP '2026-01-01 00:00:00')", "INT: !overflow"}, {"INTERVAL '1' HOUR * 3 = INTERVAL '3' HOUR", "BOOLEAN: TRUE"},
	            {"TIMESTAMP '2026-01-02 00:00:00' - TIMESTAMP '2026-01-01 00:00:00' = INTERVAL '1' DAY", "BOOLEAN: TRUE"});
	CHECK({"TO_TIMESTAMP('2026-01-01 10:11:12')", "2026-01-01 10:11:12.000"}, {"TO_TIMESTAMP('nonsense')", "NULL"}, {"TO_TIMESTAMP('05/03/2026 7:08', 'dd/MM/yyyy H:mm')", "2026-03-05 07:08:00.000"},
	      {"TO_TIMESTAMP('20260305070809', 'yyyyMMddHHmmss')", "2026-03-05 07:08:09.000"}, {"TO_TIMESTAMP('2026-02-30', 'yyyy-MM-dd')", "NULL"}, {"TO_TIMESTAMP('x', 'yyyy-bb')", "error"},
	      {"TO_TIMESTAMP('2017-12-03T11:59:41.999Z', 'yyyy-MM-dd''T''HH:mm:ss.SSSX')", "2017-12-03 11:59:41.999"}, {"TO_TIMESTAMP('Mar 5, 2026 01:02 PM', 'MMM d, yyyy hh:mm a')", "2026-03-05 13:02:00.000"},
	      {"TO_TIMESTAMP('2026-01-01 00:00:00+02:00', 'yyyy-MM-dd HH:mm:ssXXX')", "2025-12-31 22:00:00.000"},
	      {"TO_TIMESTAMP_LTZ(1584696326, 0)", "2020-03-20 09:25:26.000"}, {"TO_TIMESTAMP_LTZ(1584696326, 3)", "1970-01-19 08:11:36.326"}, {"TO_TIMESTAMP_LTZ(1584696326384001, 6)", "2020-03-20 09:25:26.384001"},
	      {"TO_TIMESTAMP_LTZ(-1, 9)", "1969-12-31 23:59:59.999999"}, {"TO_TIMESTAMP_LTZ(1.5, 0)", "1970-01-01 00:00:01.500"}, {"TO_TIMESTAMP_LTZ(1.25e0, 0)", "1970-01-01 00:00:01.250"},
	      {"TO_TIMESTAMP_LTZ(9223372036854775807, 3)", "!range"}, {"TO_TIMESTAMP_LTZ(-9223372036854775807, 3)", "!range"}, {"TO_TIMESTAMP_LTZ(9223372036854775807, 0)", "!range"},
	      {"TO_TIMESTAMP_LTZ(253402300799999, 3)", "9999-12-31 23:59:59.999"}, {"TO_TIMESTAMP_LTZ(1, 4)", "error"},
	      {"TO_TIMESTAMP_LTZ('2026-07-01 12:00:00', 'yyyy-MM-dd HH:mm:ss', 'Europe/Berlin')", "2026-07-01 10:00:00.000"},
	      {"UNIX_TIMESTAMP('1970-01-01 00:01:00')", "60"}, {"UNIX_TIMESTAMP('1970/01/02', 'yyyy/MM/dd')", "86400"}, {"UNIX_TIMESTAMP()", "error"}, {"FROM_UNIXTIME(44)", "1970-01-01 00:00:44"},
	      {"FROM_UNIXTIME(-1, 'yyyy-MM-dd''T''HH:mm:ss')", "1969-12-31T23:59:59"}, {"FROM_UNIXTIME(9223372036854775807)", "!range"}, {"TO_DATE('2026-03-05')", "2026-03-05"}, {"TO_DATE('05.03.26', 'dd.MM.yy')", "2026-03-05"}, {"TO_DATE('x')", "NULL"});
	CHECK({"DATE_FORMAT(TIMESTAMP '2026-03-05 07:08:09.120', 'yyyy/M/d HH:mm:ss.SSS')", "2026/3/5 07:08:09.120"}, {"DATE_FORMAT(TIMESTAMP '2026-03-05 19:08:09', 'EEE EEEE MMM MMMM h a D Q')", "Thu Thursday Mar March 7 PM 64 1"},
	      {"DATE_FORMAT(DATE '2026-03-05', 'yy''year'' XXX Z z')", "26year Z +0000 UTC"}, {"DATE_FORMAT('2026-03-05 01:02:03', 'HHmmss')", "010203"}, {"DATE_FORMAT(DATE '2026-03-05', 'j')", "error"}, {"DATE_FORMAT(DATE '2026-03-05', '''x')", "error"});
	CHECK({"CONVERT_TZ('1970-01-01 00:00:00', 'UTC', 'America/Los_Angeles')", "1969-12-31 16:00:00"}, {"CONVERT_TZ('2026-07-01 00:00:00', 'UTC', 'Europe/Berlin')", "2026-07-01 02:00:00"},
	      {"CONVERT_TZ('2090-07-01 00:00:00', 'UTC', 'Europe/Berlin')", "2090-07-01 02:00:00"}, {"CONVERT_TZ('2090-12-01 00:00:00', 'UTC', 'America/New_York')", "2090-11-30 19:00:00"},
	      {"CONVERT_TZ('2026-03-29 02:30:00', 'Europe/Berlin', 'UTC')", "2026-03-29 01:30:00"}, {"CONVERT_TZ('2026-10-25 02:30:00', 'Europe/Berlin', 'UTC')", "2026-10-25 00:30:00"},
	      {"CONVERT_TZ('2026-01-01 00:00:00', '+05:45', 'UTC')", "2025-12-31 18:15:00"}, {"CONVERT_TZ('2026-01-01 00:00:00', 'UTC', 'Asia/Kathmandu')", "2026-01-01 05:45:00"},
	      {"CONVERT_TZ('x', 'UTC', 'UTC')", "NULL"}, {"CONVERT_TZ('2026-01-01 00:00:00', 'UTC', 'PDT')", "error"}, {"CONVERT_TZ('2026-01-01 00:00:00', 'Mars/Base', 'UTC')", "error"}, {"CONVERT_TZ('2026-01-01 00:00:00', '', 'UTC')", "error"},
	      {"CONVERT_TZ('2026-01-01 00:00:00', '../../etc/passwd', 'UTC')", "error"});
	CHECK({"NOW()", "error"}, {"CURRENT_TIMESTAMP", "error"}, {"PROCTIME()", "error"}, {"UUID()", "error"}, {"RAND()", "error"});
}

static void test_json(void **state)
{
	(void)state;
	CHECK({"JSON_VALUE('{\"a\": {\"b\": [1, \"x\\n\", null]}}', '$.a.b[1]')", "x\n"}, {"JSON_VALUE('{\"a\": 1.50}', '$.a')", "1.50"}, {"JSON_VALUE('{\"a\": null}', '$.a')", "NULL"},
	      {"JSON_VALUE('{\"a\": 1}', '$.b')", "NULL"}, {"JSON_VALUE('{\"a\": {}}', '$.a')", "NULL"}, {"JSON_VALUE('{\"a\": true}', 'lax $.a')", "true"}, {"JSON_VALUE('bad', '$')", "NULL"},
	      {"JSON_VALUE('{\"a b\": 7}', '$[''a b'']')", "7"}, {"JSON_VALUE('{\"a\": 1, \"a\": 2}', '$.a')", "2"}, {"JSON_VALUE('{\"\\u0041\": 3}', '$.A')", "3"},
	      {"JSON_VALUE('{\"a\": \"\\u00e9\\ud83d\\ude00\"}', '$.a')", "é😀"}, {"JSON_VALUE('{}', 'a')", "error"}, {"JSON_VALUE('{}', '$.a[*]')", "error"},
	      {"JSON_QUERY('{\"a\": [1, { \"b\" : \" x \" }]}', '$.a')", "[1,{\"b\":\" x \"}]"}, {"JSON_QUERY('{\"a\": 1}', '$.a')", "NULL"}, {"JSON_EXISTS('{\"a\": null}', '$.a')", "FALSE"}, {"JSON_EXISTS('{\"a\": []}', '$.a')", "TRUE"},
	      {"JSON_EXISTS('{\"a\": 1}', '$.a.b')", "FALSE"}, {"IS_JSON('[1, 2]')", "TRUE"}, {"IS_JSON('[1, ]')", "FALSE"}, {"IS_JSON('')", "FALSE"}, {"IS_JSON('01')", "FALSE"}, {"IS_JSON('{\"a\":}')", "FALSE"},
	      {"IS_JSON('{\"a\" 1}')", "FALSE"}, {"IS_JSON(' \"a\" ')", "TRUE"}, {"IS_JSON('1 2')", "FALSE"}, {"IS_JSON('{\"a\":1,}')", "FALSE"}, {"IS_JSON('[[[]]]')", "TRUE"}, {"IS_JSON('[}')", "FALSE"});
}
/* clang-format on */

static void test_nested_values(void **state)
{
	(void)state;
	struct weir_mem m = {0};
	struct weir_type element = t_decimal(12, 2), string = t_string();
	static const char *const names[] = {"id", "note"};
	struct weir_type pair[2] = {t_kind(WEIR_KIND_BIGINT), t_string()}, map[2] = {string, t_kind(WEIR_KIND_INT)};
	struct weir_type array_type = {.kind = WEIR_KIND_ARRAY, .field_count = 1, .fields = &element};
	struct weir_type row_type = {.kind = WEIR_KIND_ROW, .field_count = 2, .fields = pair, .field_names = names};
	struct weir_type map_type = {.kind = WEIR_KIND_MAP, .field_count = 2, .fields = map};
	struct weir_expr a = *x_str(&m, "[1.5,\"2.25\",null]"), w = *x_str(&m, "{\"id\":9,\"note\":\"a\\tb\"}"),
			 p = *x_str(&m, "{\"k\":4,\"bad\":\"x\"}");
	struct weir_expr one = *x_str(&m, "[7]");
	a.type = one.type = array_type;
	w.type = row_type;
	p.type = map_type;
	assert_string_equal(x_eval(&m, x_call(&m, "ITEM", &a, x_int(&m, WEIR_KIND_INT, 1), NULL)), "1.50");
	assert_string_equal(x_eval(&m, x_call(&m, "ITEM", &a, x_int(&m, WEIR_KIND_INT, 2), NULL)), "2.25");
	assert_string_equal(x_eval(&m, x_call(&m, "ITEM", &a, x_int(&m, WEIR_KIND_INT, 3), NULL)), "NULL");
	assert_string_equal(x_eval(&m, x_call(&m, "ITEM", &a, x_int(&m, WEIR_KIND_INT, 4), NULL)), "NULL");
	assert_string_equal(x_eval(&m, x_call(&m, "CARDINALITY", &a, NULL)), "3");
	assert_string_equal(x_eval(&m, x_call(&m, "ELEMENT", &one, NULL)), "7.00");
	assert_string_equal(x_eval(&m, x_call(&m, "ELEMENT", &a, NULL)), "!expr");
	assert_string_equal(x_eval(&m, x_call(&m, "ARRAY_CONTAINS", &a, x_dec(&m, 12, 2, 225), NULL)), "TRUE");
	assert_string_equal(x_eval(&m, x_call(&m, "ARRAY_CONTAINS", &a, x_dec(&m, 12, 2, 226), NULL)), "FALSE");
	assert_string_equal(x_eval(&m, x_call(&m, "FIELD", &w, x_str(&m, "id"), NULL)), "9");
	assert_string_equal(x_eval(&m, x_call(&m, "FIELD", &w, x_str(&m, "note"), NULL)), "a\tb");
	assert_null(x_call(&m, "FIELD", &w, x_str(&m, "nope"), NULL));
	assert_string_equal(x_eval(&m, x_call(&m, "ITEM", &p, x_str(&m, "k"), NULL)), "4");
	assert_string_equal(x_eval(&m, x_call(&m, "ITEM", &p, x_str(&m, "z"), NULL)), "NULL");
	assert_string_equal(x_eval(&m, x_call(&m, "ITEM", &p, x_str(&m, "bad"), NULL)), "!expr");
	weir_mem_fini(&m);
}

/* Negative timestamps floor: -1 falls into [-10000, 0). */
static void test_tumble_start(void **state)
{
	(void)state;
	struct weir_mem m = {0};
	struct x_batch b;
	x_batch_init(&b, (enum weir_phys[]){WEIR_PHYS_I64}, 1, 6);
	static const int64_t ts[] = {-1, 0, 9999, 10000, -10001, INT64_MIN}, want[] = {-10000, 0, 0, 10000, -20000};
	memcpy(b.col[0].i64, ts, sizeof ts);
	const struct weir_expr *e = x_call(&m, "$TUMBLE_START", x_col(&m, 0, t_time(WEIR_KIND_TIMESTAMP_LTZ, 3)),
					   x_int(&m, WEIR_KIND_BIGINT, 10000), x_int(&m, WEIR_KIND_BIGINT, 0), NULL);
	const struct weir_expr *f = x_call(&m, "$TUMBLE_START", x_col(&m, 0, t_time(WEIR_KIND_TIMESTAMP, 6)),
					   x_int(&m, WEIR_KIND_BIGINT, 1), x_int(&m, WEIR_KIND_BIGINT, 0), NULL);
	struct weir_program *pg;
	const struct weir_col *out;
	assert_int_equal(weir_program_create(&pg, &e, 1, NULL), WEIR_OK);
	weir_program_run(pg, b.in, &b.sel, &b.scratch, &out, &b.errors);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(out->i64[i], want[i]);
	assert_int_equal(b.errors.count, 1);
	assert_int_equal(b.errors.e[0].row, 5);
	assert_int_equal(b.errors.e[0].reason, WEIR_REASON_OVERFLOW);
	weir_program_destroy(pg);

	/* Microseconds: never rounded up into the next window. */
	b.col[0].i64[0] = INT64_C(1584696326384999);
	b.col[0].i64[1] = -1;
	weir_sel_all(&b.sel, 2);
	assert_int_equal(weir_program_create(&pg, &f, 1, NULL), WEIR_OK);
	weir_program_run(pg, b.in, &b.sel, &b.scratch, &out, &b.errors);
	assert_int_equal(out->i64[0], INT64_C(1584696326384));
	assert_int_equal(out->i64[1], -1);
	weir_program_destroy(pg);
	x_batch_fini(&b);
	weir_mem_fini(&m);
}

static void test_table_is_in_order(void **state)
{
	(void)state;
	const struct weir_function *f, *first;
	uint32_t count;
	for (uint32_t i = 0; (f = weir_function_at(i)) != NULL; i++) {
		assert_non_null(f->resolve);
		assert_non_null(f->kernel);
		assert_non_null(f->doc);
		assert_true(f->args_min <= f->args_max);
		assert_true(weir_function_find(f->name, &first, &count));
		/* Entries of a name stand together. */
		assert_true(f >= first && f < first + count);
	}
	assert_true(weir_function_find("upper", &first, &count));
	assert_false(weir_function_find("NO_SUCH", &first, &count));
	assert_string_equal(weir_function_nearest("uper"), "UPPER");
	assert_true(weir_name_is_aggregate("Sum"));
	assert_false(weir_name_is_aggregate("upper"));
}

/* Neither the process's zone nor its locale is looked at. */
static void test_environment_is_ignored(void **state)
{
	(void)state;
	static const char *const zones[] = {"UTC", "America/Los_Angeles", "Asia/Kathmandu"};
	for (uint32_t i = 0; i < 3; i++) {
		struct weir_mem m = {0};
		setenv("TZ", zones[i], 1);
		assert_string_equal(x_sql(&m, "DATE_FORMAT(TO_TIMESTAMP('2026-01-01 00:00:00'), 'yyyy-MM-dd HH:mm')"),
				    "2026-01-01 00:00");
		assert_string_equal(x_sql(&m, "FROM_UNIXTIME(0)"), "1970-01-01 00:00:00");
		weir_mem_fini(&m);
	}
	unsetenv("TZ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_arithmetic),
		cmocka_unit_test(test_comparison),
		cmocka_unit_test(test_strings),
		cmocka_unit_test(test_like_and_regex),
		cmocka_unit_test(test_math),
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_nested_values),
		cmocka_unit_test(test_tumble_start),
		cmocka_unit_test(test_table_is_in_order),
		cmocka_unit_test(test_environment_is_ignored),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
