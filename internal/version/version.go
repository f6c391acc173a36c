// Package version has the version of gm, which its tools and libgm.so share.
package version

// Number is the version: GM_VERSION of internal/libgm/gm.h and the first heading of CHANGELOG.md are the same.
const Number = "0.1.0"
