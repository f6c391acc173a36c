#!/bin/sh
# Stands in for a C++ compiler: logs that it ran, and copies NATIVE to where the output goes.
echo "0 compile" >> "$GM_LOG"
sleep "${CXX_SLEEP:-0}"
if [ -n "$CXX_FAILS" ]; then
	echo "install.cpp:1:1: note: this is one"
	echo "install.cpp:2:1: error: $CXX_FAILS"
	exit 1
fi
while [ "$1" != -o ]; do shift; done
case "$2" in "${CXX_FULL:-/nowhere}"/*)
	echo "ld: final link failed: No space left on device"
	exit 1
esac
cp "$NATIVE" "$2"
