#!/usr/bin/env bash
# Makes a Debian package: build.sh INSTALLED OUT VERSION GLIBC. Its maintainer is DEBFULLNAME with DEBEMAIL, as for Debian's own tools; they
# are who answers for a package that others get. By default it is gm developers, without an address that exists. DPKG_DEB has other options for dpkg-deb, such as -Znone.
set -euo pipefail
installed=$1 out=$2 version=$3-1 glibc=$4 stage=$2/deb
here=$(dirname "$0")
architecture=$(dpkg --print-architecture)
documents=$stage/usr/share/doc/gm
maintainer="${DEBFULLNAME:-gm developers} <${DEBEMAIL:-gm@developers.invalid}>"

rm -rf "$stage"
mkdir -p "$stage/usr/lib/gm"
cp -r "$installed/." "$stage/usr"

# What Debian's policy asks for: compressed manual pages and change logs, a file named copyright, and a library without a version apart.
mv "$stage/usr/lib/libgm.so" "$stage/usr/lib/gm"
gzip -9n "$stage"/usr/share/man/man1/*
mv "$documents/CHANGELOG.md" "$documents/changelog"
cat > "$documents/changelog.Debian" <<END
gm ($version) unstable; urgency=medium

  * Package of the release. Its changes are in changelog.gz.

 -- $maintainer  $(date -Rud "@$SOURCE_DATE_EPOCH")
END
gzip -9n "$documents/changelog" "$documents/changelog.Debian" "$documents/third-party.txt"
cp "$here/copyright" "$documents/copyright"
rm "$documents/LICENSE"
mkdir -p "$stage/usr/share/zsh/vendor-completions"
mv "$stage"/usr/share/zsh/site-functions/* "$stage/usr/share/zsh/vendor-completions"
rmdir "$stage/usr/share/zsh/site-functions"
install -Dm 644 "$here/lintian-overrides" "$stage/usr/share/lintian/overrides/gm"

mkdir "$stage/DEBIAN"
size=$(du -sk --exclude=DEBIAN "$stage" | cut -f1)
sed "s/@VERSION@/$version/; s/@ARCHITECTURE@/$architecture/; s/@SIZE@/$size/; s/@GLIBC@/$glibc/; s/@MAINTAINER@/$maintainer/" "$here/control" > "$stage/DEBIAN/control"
(cd "$stage" && find usr -type f -print0 | sort -z | xargs -0 md5sum) > "$stage/DEBIAN/md5sums"
chmod -R u=rwX,go=rX "$stage"
find "$stage" -exec touch -hd "@$SOURCE_DATE_EPOCH" {} +
dpkg-deb --root-owner-group ${DPKG_DEB--Zxz -z3} --build "$stage" "$out/gm_${version}_$architecture.deb"
