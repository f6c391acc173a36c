# What gm is installed from. All is made in out/ from what make install installs.

PREFIX  ?= /usr/local
LIBDIR  ?= $(PREFIX)/lib
VERSION := $(shell sed -n 's/^const Number = "\(.*\)"/\1/p' internal/version/version.go)
MACHINE := $(shell uname -m)
# The time of the commit, so that the same commit gives the same files.
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || date +%s)
export SOURCE_DATE_EPOCH

BINDIR := $(DESTDIR)$(PREFIX)/bin
SHARE  := $(DESTDIR)$(PREFIX)/share
STAGE  := out/stage/gm-$(VERSION)
# Documents are installed in the folders in which they are here, so that their links hold.
DOCUMENTS := README.md CHANGELOG.md LICENSE formats/README.md $(wildcard docs/*.md docs/*.png docs/examples/* packaging/slurm/*.sh packaging/kubernetes/*.yaml)
GLIBC_NEEDED = $$($(GO) run ./packaging glibc $(addprefix bin/,$(TOOLS)) $(LOADED))

.PHONY: install copy stage tarball deb wheel test-packages

install: all ## install the tools, libgm.so, documents, manual pages and shell completion below PREFIX (/usr/local), or DESTDIR and PREFIX
	@$(MAKE) --no-print-directory copy

# What was built, installed.
copy:
	install -d $(BINDIR) $(DESTDIR)$(LIBDIR) $(DESTDIR)$(PREFIX)/include $(SHARE)/man/man1 $(SHARE)/doc/gm \
		$(SHARE)/bash-completion/completions $(SHARE)/fish/vendor_completions.d $(SHARE)/zsh/site-functions
	install -s $(addprefix bin/,$(TOOLS)) $(BINDIR)
	install -s -m 644 bin/libgm.so $(DESTDIR)$(LIBDIR)
	install -m 644 $(LIBGM)/gm.h $(DESTDIR)$(PREFIX)/include
	for name in $(DOCUMENTS); do install -D -m 644 $$name $(SHARE)/doc/gm/$$name || exit 1; done
	$(GO) run ./packaging licences > $(SHARE)/doc/gm/third-party.txt
	for tool in $(TOOLS); do \
		bin/$$tool man > $(SHARE)/man/man1/$$tool.1 && \
		bin/$$tool completion bash > $(SHARE)/bash-completion/completions/$$tool && \
		bin/$$tool completion fish > $(SHARE)/fish/vendor_completions.d/$$tool.fish && \
		{ echo "#compdef $$tool" && bin/$$tool completion zsh && echo "_bash_complete -o filenames -F _$$tool"; } > $(SHARE)/zsh/site-functions/_$$tool || exit 1; \
	done

# An installation that the packages are made of.
stage: all
	rm -rf out/stage
	$(MAKE) --no-print-directory -s copy DESTDIR=$(CURDIR)/out/stage PREFIX=/gm-$(VERSION) LIBDIR=/gm-$(VERSION)/lib

tarball: stage ## out/gm-VERSION-linux-MACHINE.tar.gz: to unpack into /usr/local, or anywhere
	tar -C out/stage --sort=name --owner=0 --group=0 --numeric-owner --mtime=@$(SOURCE_DATE_EPOCH) -cf - gm-$(VERSION) | gzip -n > out/gm-$(VERSION)-linux-$(MACHINE).tar.gz
	@echo "out/gm-$(VERSION)-linux-$(MACHINE).tar.gz: needs glibc $(GLIBC_NEEDED) or later"

deb: stage ## out/gm_VERSION_ARCHITECTURE.deb, for Debian and Ubuntu (needs dpkg-deb)
	packaging/deb/build.sh $(STAGE) out $(VERSION) "$(GLIBC_NEEDED)"

wheel: stage ## out/gm-VERSION-py3-none-PLATFORM.whl, for pip: the tools, libgm.so and a Python module
	$(GO) run ./packaging wheel out $(STAGE) $(LOADED)

test-packages: ## make each package that can be made here, and try it
	rm -f out/gm-*.tar.gz out/gm_*.deb out/gm-*.whl
	DPKG_DEB=-Znone $(MAKE) --no-print-directory tarball wheel $(if $(shell command -v dpkg-deb),deb)
	GM_PACKAGES=$(CURDIR)/out $(GO) test -count 1 ./packaging
