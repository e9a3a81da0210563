# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# make                 build the module for the running kernel, or for KDIR=...
# make userspace       build the provider for rdma-core, for the installed libibverbs or
#                      against RDMA_CORE_SRC=...
# make install         install both (the provider if it was built), the module with DKMS
#                      where that is there; make uninstall
# make demo            see perftest run over it, in a guest; needs nothing but this tree
# make check           the whole test suite in guests; CHECK="6.1 6.12 ..." for some
# make check-rdma-core rdma-core's own test suite in guests, with both providers
# make bench           speed beside rdma_rxe and TCP, into bench.out; BENCH=smoke, quick
#                      (default, 5 minutes) or full
# make lint            sparse and checkpatch

KVER    ?= $(shell uname -r)
KDIR    ?= /lib/modules/$(KVER)/build
MODULE  := drivers/infiniband/sw/sroce/sroce.ko
VERSION := $(shell sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' dkms.conf 2>/dev/null)
DKMSSRC := $(DESTDIR)/usr/src/sroce-$(VERSION)
MODDIR  := $(DESTDIR)/lib/modules/$(KVER)/updates

PROVIDER := userspace/out

.PHONY: all modules userspace clean install uninstall demo check check-rdma-core bench lint deps

all: modules

modules:
	$(MAKE) -C $(KDIR) M=$(CURDIR) modules

userspace:
	@userspace/build $(PROVIDER) $(RDMA_CORE_SRC)

clean:
	$(MAKE) -C $(KDIR) M=$(CURDIR) clean
	rm -rf $(PROVIDER)

# With DKMS the module follows the kernel; without it, it is for this kernel only
install:
	@if command -v dkms >/dev/null; then \
		set -e; mkdir -p $(DKMSSRC); \
		cp -r Kbuild Makefile dkms.conf drivers include $(DKMSSRC)/; \
		dkms add sroce/$(VERSION) 2>/dev/null || true; \
		dkms install --force sroce/$(VERSION) -k $(KVER); \
	else \
		set -e; install -D -m 644 $(MODULE) $(MODDIR)/sroce.ko; \
		test -n "$(DESTDIR)" || depmod $(KVER); \
	fi
	@test ! -d $(PROVIDER) || DESTDIR=$(DESTDIR) userspace/install $(PROVIDER)
	@echo "Installed. To bind an interface: rdma link add rxe_eth0 type sroce netdev eth0"

uninstall:
	@if command -v dkms >/dev/null && dkms status sroce/$(VERSION) | grep -q sroce; then \
		dkms remove sroce/$(VERSION) --all; \
	fi
	rm -rf $(DKMSSRC) $(MODDIR)/sroce.ko
	@DESTDIR=$(DESTDIR) userspace/install -u $(PROVIDER) 2>/dev/null || true
	@test -n "$(DESTDIR)" || depmod $(KVER)

deps:
	@selftests/vm/deps

demo: deps
	@selftests/vm/vm -k 6.1 -- selftests/demo

check: deps
	@selftests/check $(CHECK)

check-rdma-core: deps
	@selftests/check rdma-core-6.1 rdma-core-6.12 rdma-core-7.2

bench: deps
	@bench/bench $(or $(BENCH),quick) $(BENCHFLAGS)

lint:
	@selftests/lint $(KDIR)
