#!/bin/bash
# install.sh: what `cmake --install` puts somewhere is enough for README's program in C: it compiles without a warning and
# its results are those of the SQL file beside it; the example programs compile, too.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/integration/lib

prefix=$scratch/prefix
if cmake --install "$(dirname "$weir")" --prefix "$prefix" >"$scratch/said" 2>&1; then
	ok "cmake --install"
else
	not_ok "cmake --install: $(tail -n 1 "$scratch/said")"
	exit 1
fi
if [ "$("$prefix/bin/weir" version | head -n 1)" = "$("$weir" version | head -n 1)" ]; then
	ok "the command is there"
else
	not_ok "the command is not there"
fi
sed -n '/^```c$/,/^```$/{/^```/d;p}' README.md >"$scratch/job.c"
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name weir.pc)")
export PKG_CONFIG_PATH
cd "$scratch" || exit 1
# shellcheck disable=SC2046
if cc -std=c11 -Wall -Wextra -Werror job.c -o job $(pkg-config --cflags --libs weir) >said 2>&1; then
	ok "README's program compiles"
else
	not_ok "README's program does not compile:"
	sed 's/^/    /' said | head -n 10
	exit 1
fi
"$weir" gen orders --records 50000 --keys 50 --rate 100 --key merchant_id --partitions 3 --out rec -q
"$weir" run "$OLDPWD/tools/examples/revenue.sql" --define in=rec --define out=out-sql -q
if ./job 2>said; then ok "it runs"; else not_ok "it fails: $(head -n 1 said)"; fi
values() { "$weir" dump "$1" "$2" --format raw | sort | cksum; }
if [ "$(values out-c revenue)" = "$(values out-sql revenue.by-merchant)" ]; then
	ok "its results are those of the SQL"
else
	not_ok "its results differ from those of the SQL"
fi
for source in "$OLDPWD"/tools/examples/c/*.c; do
	name=$(basename "$source" .c)
	[ "$name" != example ] || continue
	# shellcheck disable=SC2046
	fine "the example $name compiles" cc -std=c11 -Wall -Wextra -Wpedantic -Werror "$source" "$OLDPWD/tools/examples/c/example.c" \
		-o "$name" $(pkg-config --cflags --libs weir)
done
[ "$failures" = 0 ]
