/* Grammar.java: random SQL expressions over the columns of Expressions.java. A rule is a type and a text with holes: %B BOOLEAN,
 * %I INT, %L BIGINT, %D DOUBLE, %N DECIMAL, %S STRING, %A DATE, %T TIMESTAMP(3), %Z TIMESTAMP_LTZ(3), %k a small number,
 * %p a small positive number, %X any type, %%  a percent sign. */
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

final class Grammar {
	static final String TYPES = "BILDNSATZ";
	private static final Map<Character, List<String>> RULES = new HashMap<>();
	private static final Map<Character, List<String>> LEAVES = new HashMap<>();

	private static void rules(char type, String... texts) {
		RULES.computeIfAbsent(type, k -> new ArrayList<>()).addAll(List.of(texts));
	}

	static {
		LEAVES.put('B', List.of("b", "b", "b", "TRUE", "FALSE", "CAST(NULL AS BOOLEAN)"));
		LEAVES.put('I', List.of("i", "i", "j", "j", "0", "1", "-3", "42", "CAST(NULL AS INT)"));
		LEAVES.put('L', List.of("l", "l", "l", "5000000000", "CAST(7 AS BIGINT)"));
		LEAVES.put('D', List.of("x", "x", "y", "CAST(2.5 AS DOUBLE)", "1.5E0", "CAST(NULL AS DOUBLE)"));
		LEAVES.put('N', List.of("d", "d", "e", "e", "1.5", "0.05", "100", "-12.345", "CAST(NULL AS DECIMAL(5, 2))"));
		LEAVES.put('S', List.of("s", "s", "s", "t", "t", "u", "'abc'", "'a,b'", "CAST(NULL AS STRING)"));
		LEAVES.put('A', List.of("dt", "dt", "dt", "DATE '2024-02-29'", "CAST(NULL AS DATE)"));
		LEAVES.put('T', List.of("tm", "tm", "tm", "TIMESTAMP '2026-03-31 12:34:56.789'", "CAST(NULL AS TIMESTAMP(3))"));
		LEAVES.put('Z', List.of("tz", "tz", "tz", "TO_TIMESTAMP_LTZ(1700000000123, 3)"));
		for (char c : TYPES.toCharArray()) {
			rules(c, "CASE WHEN %B THEN %" + c + " ELSE %" + c + " END", "CASE WHEN %B THEN %" + c + " WHEN %B THEN %" + c + " END",
				"COALESCE(%" + c + ", %" + c + ")", "NULLIF(%" + c + ", %" + c + ")", "IF(%B, %" + c + ", %" + c + ")");
			rules('B', "%" + c + " IS NULL", "%" + c + " IS NOT NULL", "%" + c + " = %" + c, "%" + c + " IS DISTINCT FROM %" + c,
				"%" + c + " IS NOT DISTINCT FROM %" + c);
			if (c != 'B')
				rules('B', "%" + c + " < %" + c, "%" + c + " >= %" + c, "%" + c + " BETWEEN %" + c + " AND %" + c,
					"%" + c + " NOT BETWEEN %" + c + " AND %" + c, "%" + c + " <> %" + c);
		}
		for (char c : "ILDNS".toCharArray()) {
			rules(c, "GREATEST(%" + c + ", %" + c + ")", "LEAST(%" + c + ", %" + c + ", %" + c + ")");
			rules('B', "%" + c + " IN (%" + c + ", %" + c + ")", "%" + c + " NOT IN (%" + c + ", %" + c + ")");
		}
		rules('B', "NOT (%B)", "(%B AND %B)", "(%B OR %B)", "(%B AND %B)", "(%B OR %B)", "(%B) IS TRUE", "(%B) IS NOT FALSE", "(%B) IS UNKNOWN",
			"(%B) IS FALSE", "(%B) IS NOT TRUE", "%I < %L", "%N >= %I", "%D < %I", "%D <= %N", "%L = %N", "%I = %D", "%N < %L",
			"%S LIKE '%%a%%'", "%S LIKE '_b%%'", "%S NOT LIKE 'a%%'", "%S LIKE '%%'", "%S LIKE %S", "%S LIKE '%%!%%%%' ESCAPE '!'",
			"%S LIKE '%%o w%%'", "%S LIKE 'A_c'", "%S LIKE '%%__'", "%S IN ('a', 'Abc', 'b')", "%I IN (1, 2, -1)", "%I NOT IN (0, 7)",
			"%I IN (1, CAST(NULL AS INT))", "%I NOT IN (1, CAST(NULL AS INT))", "STARTSWITH(%S, %S)", "ENDSWITH(%S, %S)", "REGEXP(%S, '[a-z]+[0-9]')",
			"REGEXP(%S, '^a')", "TRY_CAST(%S AS BOOLEAN)", "CAST(%I AS BOOLEAN)", "%S IS JSON", "CAST(%A AS TIMESTAMP(3)) < %T",
			"JSON_EXISTS(%S, '$.a')", "%T < CAST('2026-01-01 00:00:00' AS TIMESTAMP(3))", "%A = '2024-02-29'", "%S > 'a'");
		rules('I', "%I + %I", "%I - %I", "%I * %k", "-(%I)", "%I / NULLIF(%I, 0)", "MOD(%I, NULLIF(%I, 0))", "%I %% NULLIF(%I, 0)", "ABS(%I)",
			"SIGN(%I)", "CHAR_LENGTH(%S)", "CHARACTER_LENGTH(%S)", "POSITION(%S IN %S)", "LOCATE(%S, %S)", "LOCATE(%S, %S, %p)", "INSTR(%S, %S)", 
			"TRY_CAST(%S AS INT)", "CAST(%N AS INT)", "CAST(%D AS INT)", "CAST(%B AS INT)", "ROUND(%I, -1)", "TRUNCATE(%I, -1)", "CASE %I WHEN 1 THEN 10 WHEN -1 THEN 20 ELSE %I END",
			"FLOOR(%I)", "CEIL(%I)", "TIMESTAMPDIFF(DAY, %T, %T)", "TIMESTAMPDIFF(HOUR, %T, %T)", "TIMESTAMPDIFF(YEAR, %A, %A)",
			"TIMESTAMPDIFF(DAY, %A, %A)", "TIMESTAMPDIFF(WEEK, %T, %T)", "TIMESTAMPDIFF(MONTH, %A, %A)", "CAST(%I AS INT)");
		rules('L', "%L + %I", "%L - %L", "%L * %k", "%I + %L", "%L / NULLIF(%I, 0)", "MOD(%L, NULLIF(%I, 0))", "ABS(%L)", "SIGN(%L)", "-(%L)", "CAST(%I AS BIGINT)",
			"CAST(%D AS BIGINT)", "CAST(%N AS BIGINT)", "TRY_CAST(%S AS BIGINT)", "YEAR(%A)", "QUARTER(%A)", "MONTH(%A)", "WEEK(%A)", "DAYOFYEAR(%A)", "DAYOFMONTH(%A)",
			"DAYOFWEEK(%A)", "HOUR(%T)", "MINUTE(%T)", "SECOND(%T)", "YEAR(%T)", "WEEK(%T)", "DAYOFWEEK(%T)", "EXTRACT(YEAR FROM %A)", "EXTRACT(MONTH FROM %T)",
			"EXTRACT(DAY FROM %T)", "EXTRACT(HOUR FROM %T)", "EXTRACT(SECOND FROM %T)", "EXTRACT(DOW FROM %A)", "EXTRACT(DOY FROM %A)", "EXTRACT(QUARTER FROM %T)",
			"EXTRACT(WEEK FROM %A)", "EXTRACT(ISODOW FROM %A)", "EXTRACT(ISOYEAR FROM %A)", "EXTRACT(CENTURY FROM %A)", "EXTRACT(DECADE FROM %A)", "EXTRACT(MILLENNIUM FROM %A)",
			"EXTRACT(MILLISECOND FROM %T)", "EXTRACT(EPOCH FROM %T)", "EXTRACT(HOUR FROM %Z)", "EXTRACT(DAY FROM %Z)", "UNIX_TIMESTAMP('2026-01-02 03:04:05')", "ROUND(%L, -2)",
			"UNIX_TIMESTAMP(DATE_FORMAT(%T, 'yyyy-MM-dd HH:mm:ss'))");
		rules('D', "%D + %D", "%D - %D", "%D * %D", "%D / NULLIF(%D, 0)", "-(%D)", "%D + %I", "%I * %D", "%N * %D", "%D / NULLIF(%I, 0)", "ABS(%D)", "SIGN(%D)", "ROUND(%D, 2)", "ROUND(%D, 0)", "ROUND(%D)",
			"ROUND(%D, -1)", "FLOOR(%D)", "CEIL(%D)", "TRUNCATE(%D, 2)", "TRUNCATE(%D, 0)", "SQRT(ABS(%D))", "EXP(LEAST(%D, 10))", "LN(ABS(%D) + 1)", "LOG10(ABS(%D) + 1)",
			"LOG2(ABS(%D) + 1)", "LOG(2, ABS(%I) + 1)", "POWER(%D, 2)", "POWER(ABS(%D), 0.5)", "SIN(%D)", "COS(%D)", "ATAN(%D)", "ATAN2(%D, %D)", "TANH(%D)", "DEGREES(%D)", "RADIANS(%D)", "PI()", "TRY_CAST(%S AS DOUBLE)",
			"CAST(%N AS DOUBLE)", "CAST(%I AS DOUBLE)", "CAST(%L AS DOUBLE)", "POWER(%I, 2)", "SQRT(ABS(%N))", "EXP(SIGN(%I))");
		rules('N', "%N + %N", "%N - %N", "%N * %N", "%N / NULLIF(%N, 0)", "MOD(%N, NULLIF(%N, 0))", "-(%N)", "%N + %I", "%I - %N", "%N * %I", "%N / NULLIF(%I, 0)", "%I / NULLIF(%N, 0)", "%L * %N", "%N / 3",
			"ROUND(%N, 1)", "ROUND(%N, 0)", "ROUND(%N)", "ROUND(%N, -1)", "ROUND(%N, 3)", "FLOOR(%N)", "CEIL(%N)", "TRUNCATE(%N, 1)", "TRUNCATE(%N, 0)", "TRUNCATE(%N, -1)", "ABS(%N)", "SIGN(%N)",
			"CAST(%D AS DECIMAL(25, 3))", "CAST(%I AS DECIMAL(12, 1))", "CAST(%N AS DECIMAL(38, 1))", "CAST(%N AS DECIMAL(30, 8))", "TRY_CAST(%N AS DECIMAL(4, 1))", "COALESCE(%N, 0)",
			"GREATEST(%N, %I)", "CASE WHEN %B THEN %N ELSE %I END", "%N + 1.25", "%N * 0.001", "CAST(%L AS DECIMAL(25, 2))", "MOD(%N, 7)", "CAST(%B AS DECIMAL(3, 1))");
		rules('S', "UPPER(%S)", "LOWER(%S)", "INITCAP(u)", "TRIM(%S)", "TRIM(BOTH 'a' FROM %S)", "TRIM(LEADING ' ' FROM %S)", "TRIM(TRAILING 'c' FROM %S)", "LTRIM(%S)", "RTRIM(%S)", "BTRIM(%S, 'ab')", "SUBSTRING(%S FROM %k FOR %p)",
			"SUBSTRING(%S, %k)", "SUBSTRING(%S FROM %k)", "SUBSTR(%S, %k, %p)", "LEFT(%S, %k)", "RIGHT(%S, %k)", "CONCAT(%S, %S)", "CONCAT(%S, %S, %S)", "CONCAT_WS(',', %S, %S)", "CONCAT_WS(%S, %S, %S)", "%S || %S", "REPLACE(%S, 'a', 'bb')",
			"OVERLAY(%S PLACING %S FROM 2 FOR 1)", "OVERLAY(%S PLACING %S FROM %p)", "SPLIT_INDEX(%S, ',', %p)", "SPLIT_INDEX(%S, ',', 0)", "SPLIT_INDEX(%S, 'b', 1)", "LPAD(%S, %p, 'xy')", "RPAD(%S, %p, 'xy')", "LPAD(%S, 8, '')",
			"REPEAT(%S, %k)", "REVERSE(%S)", "CHR(%I)", "CHR(%p)", "BIN(%I)", "BIN(%L)", "HEX(%I)", "HEX(%S)", "TO_BASE64(%S)", "FROM_BASE64(TO_BASE64(%S))", "MD5(%S)", "SHA1(%S)", "SHA256(%S)", "REGEXP_EXTRACT(%S, '([a-z]+)', 1)",
			"REGEXP_EXTRACT(%S, '([a-z])([0-9])?', 2)", "REGEXP_EXTRACT(%S, '[0-9]+')", "REGEXP_REPLACE(%S, '[aeiou]', '*')", "REGEXP_REPLACE(%S, '([a-z])', '<$1>')", "CAST(%I AS STRING)", "CAST(%L AS STRING)", "CAST(%D AS STRING)", "CAST(%D AS STRING)",
			"CAST(%N AS STRING)", "CAST(%B AS STRING)", "CAST(%A AS STRING)", "CAST(%T AS STRING)", "CAST(%Z AS STRING)", "CAST(%S AS VARCHAR(3))", "CAST(%S AS CHAR(5))", "CAST(%I AS VARCHAR(2))", "CAST(%B AS CHAR(5))",
			"DATE_FORMAT(%T, 'yyyy-MM-dd HH:mm:ss.SSS')", "DATE_FORMAT(%T, 'yyyyMMdd')", "DATE_FORMAT(%T, 'EEE, d MMM yy h:mm a')", "DATE_FORMAT(%T, 'D ''day'' H')", "DATE_FORMAT(%Z, 'yyyy-MM-dd''T''HH:mm:ss')", "JSON_VALUE(%S, '$.a')", "JSON_VALUE(u, '$.b.c')",
			"JSON_QUERY(u, '$.b')", "JSON_QUERY(u, '$.l')", "JSON_VALUE(u, '$.l[1]')", "JSON_VALUE(u, '$[0]')", "FROM_UNIXTIME(ABS(%L))", "FROM_UNIXTIME(CAST(%I AS BIGINT))", "FROM_UNIXTIME(CAST(%I AS BIGINT), 'yyyy/MM/dd')", "COALESCE(%S, CAST(%I AS STRING))",
			"CAST(CAST(%D AS DECIMAL(20, 4)) AS STRING)", "CAST(%N * %N AS STRING)", "DECODE(ENCODE(%S, 'UTF-8'), 'UTF-8')", "CAST(%D AS STRING)");
		rules('A', "CAST(%T AS DATE)", "CAST(%Z AS DATE)", "TRY_CAST(s AS DATE)", "TO_DATE(t)", "TO_DATE(DATE_FORMAT(%T, 'dd.MM.yyyy'), 'dd.MM.yyyy')", "%A + INTERVAL '1' DAY", "%A - INTERVAL '1' MONTH", "%A + INTERVAL '1-2' YEAR TO MONTH",
			"FLOOR(%A TO MONTH)", "FLOOR(%A TO YEAR)", "FLOOR(%A TO WEEK)", "CEIL(%A TO MONTH)", "CEIL(%A TO YEAR)", "TIMESTAMPADD(MONTH, %k, %A)", "TIMESTAMPADD(DAY, %k, %A)", "TIMESTAMPADD(YEAR, %k, %A)", "FLOOR(%A TO QUARTER)", "CEIL(%A TO WEEK)", "CEIL(%A TO YEAR)");
		rules('T', "TO_TIMESTAMP(%S)", "TO_TIMESTAMP(DATE_FORMAT(%T, 'yyyy-MM-dd HH:mm'), 'yyyy-MM-dd HH:mm')", "CAST(%A AS TIMESTAMP(3))", "CAST(%Z AS TIMESTAMP(3))", "TRY_CAST(%S AS TIMESTAMP(3))", "%T + INTERVAL '1 02' DAY TO HOUR", "%T - INTERVAL '1' YEAR",
			"%T + INTERVAL '1' MONTH", "%T - INTERVAL '0.5' SECOND", "%T + INTERVAL '3' HOUR", "FLOOR(%T TO HOUR)", "FLOOR(%T TO DAY)", "FLOOR(%T TO MONTH)", "FLOOR(%T TO YEAR)", "FLOOR(%T TO WEEK)", "FLOOR(%T TO SECOND)", "FLOOR(%T TO QUARTER)", "CEIL(%T TO DAY)", "CEIL(%T TO HOUR)",
			"CEIL(%T TO MINUTE)", "TIMESTAMPADD(SECOND, %k, %T)", "TIMESTAMPADD(MONTH, %k, %T)", "TIMESTAMPADD(WEEK, %k, %T)", "TIMESTAMPADD(QUARTER, %k, %T)", "TIMESTAMPADD(HOUR, %k, %T)", "CAST(%T AS TIMESTAMP(0))",
			"CAST(CAST(%T AS STRING) AS TIMESTAMP(3))", "TIMESTAMPADD(DAY, %k, %T)");
		rules('Z', "TO_TIMESTAMP_LTZ(ABS(%L) + 600000000000, 3)", "TO_TIMESTAMP_LTZ(ABS(%I), 0)", "CAST(%T AS TIMESTAMP_LTZ(3))", "%Z + INTERVAL '5' SECOND", "%Z - INTERVAL '1' DAY", "FLOOR(%Z TO HOUR)", "CEIL(%Z TO DAY)", "TIMESTAMPADD(MINUTE, %k, %Z)", "TO_TIMESTAMP_LTZ(ABS(%I), 3)");
	}

	private final Random rnd;

	Grammar(Random rnd) {
		this.rnd = rnd;
	}

	private <T> T pick(List<T> l) {
		return l.get(rnd.nextInt(l.size()));
	}

	/** All rules of all types, once each, over columns and literals: the first expressions of every seed. */
	static int ruleCount() {
		return RULES.values().stream().mapToInt(List::size).sum();
	}

	String rule(int n) {
		for (char c : TYPES.toCharArray()) {
			List<String> l = RULES.get(c);
			if (n < l.size())
				return fill(l.get(n), 0);
			n -= l.size();
		}
		throw new IllegalArgumentException();
	}

	String expression(int depth) {
		return expression(TYPES.charAt(rnd.nextInt(TYPES.length())), depth);
	}

	private String expression(char type, int depth) {
		if (depth == 0 || rnd.nextInt(6) == 0)
			return pick(LEAVES.get(type));
		return "(" + fill(pick(RULES.get(type)), depth - 1) + ")";
	}

	private String fill(String rule, int depth) {
		StringBuilder sb = new StringBuilder();
		for (int i = 0; i < rule.length(); i++) {
			char c = rule.charAt(i);
			if (c != '%') {
				sb.append(c);
				continue;
			}
			c = rule.charAt(++i);
			if (c == '%')
				sb.append('%');
			else if (c == 'k')
				sb.append(rnd.nextInt(12) - 3);
			else if (c == 'p')
				sb.append(1 + rnd.nextInt(9));
			else
				sb.append(expression(c, depth));
		}
		return sb.toString();
	}
}
