#!/bin/bash
# Builds all of gm for aarch64 in out/aarch64, and runs under qemu what can run there. The sources are copied, since the tools embed libraries
# of their machine. Needs Debian's gcc-aarch64-linux-gnu and libc6-dev-arm64-cross; the tests need qemu-user-static.
set -eu -o pipefail

cc=aarch64-linux-gnu-gcc
qemu=qemu-aarch64-static
tools='gmtrace gmplan gmbench gmstitch gmswap'
# Tests that start no program and need nothing of the kernel that qemu lacks.
packages='./formats/... ./internal/blocks ./internal/bench/estimate ./internal/bench/fleet ./internal/bench/ranks ./internal/capture/ring
	./internal/dsa/skyline ./internal/models/shapes ./internal/models/synth ./internal/swap/simulate ./internal/trace/ranks'

command -v $cc > /dev/null || {
	echo "aarch64: nothing is built, $cc is not here (Debian: gcc-aarch64-linux-gnu and libc6-dev-arm64-cross)" >&2
	exit 1
}
rm -rf out/aarch64 # what is no source any more goes
mkdir -p out/aarch64
tar --exclude=./out --exclude=./bin --exclude=./.git --exclude='*.so' -cf - . | tar -C out/aarch64 -xf -
cd out/aarch64
export GOARCH=arm64 CGO_ENABLED=1 CC=$cc
make --no-print-directory all CC=$cc
for file in bin/*; do
	[ "$(od -An -tx2 -j18 -N2 "$file")" = ' 00b7' ] || { echo "aarch64: out/aarch64/$file is of another machine" >&2; exit 1; }
done
go vet ./...
echo "aarch64: the tools and libraries are in out/aarch64/bin"

command -v $qemu > /dev/null || {
	echo "aarch64: nothing was run, $qemu is not here (Debian: qemu-user-static)"
	exit 0
}
QEMU_LD_PREFIX=$(dirname "$(dirname "$(realpath "$($cc -print-file-name=ld-linux-aarch64.so.1)")")")
export QEMU_LD_PREFIX
for tool in $tools; do
	$qemu "bin/$tool" --version
done
# pipe prints the table of a snapshot that went through three tools.
pipe() { # RUNNER FOLDER
	$1 "$2/gmtrace" import testdata/snapshots/gpt2.pickle.gz | $1 "$2/gmplan" | $1 "$2/gmbench" --json
}
cmp <(pipe "$qemu" bin) <(pipe '' ../../bin)
echo 'aarch64: gmtrace import | gmplan | gmbench print what they print here'

# qemu does not tell a program which of its addresses a cut file has lost, which one test is about.
# shellcheck disable=SC2086
go test -short -timeout 1h -exec "$qemu" -skip TestCutFile $packages
# With pages of 64 KiB. qemu does not say which pages are taken, which three tests ask.
go test -short -exec "$qemu -p 65536" -skip 'TestExpected|TestPinningFails|TestAllowance' ./internal/swap/engine
