// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * CRC-32 by carry-less multiplication on kernels before 6.15, where only the
 * crypto layer has it.
 */
#include <crypto/hash.h>
#include <linux/err.h>
#include "compat.h"

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 15, 0)
static struct crypto_shash *crc32_tfm;

/**
 * sroce_crc32_init - load the crypto layer's CRC-32
 *
 * Context: process.  Return: 0 or the crypto layer's errno.
 */
int sroce_crc32_init(void)
{
	struct crypto_shash *tfm = crypto_alloc_shash("crc32", 0, 0);

	if (IS_ERR(tfm))
		return PTR_ERR(tfm);
	/* the state is the running CRC itself: see sroce_crc32_update() */
	if (crypto_shash_descsize(tfm) != sizeof(u32)) {
		crypto_free_shash(tfm);
		return -EOPNOTSUPP;
	}
	crc32_tfm = tfm;
	return 0;
}

/**
 * sroce_crc32_exit - the reverse of sroce_crc32_init()
 */
void sroce_crc32_exit(void)
{
	crypto_free_shash(crc32_tfm);
}

/**
 * sroce_crc32_update - crc32_le() by the crypto layer
 * @crc: CRC so far
 * @data: what to add
 * @len: its length, bytes
 *
 * Return: the new CRC, neither inverted.
 */
u32 sroce_crc32_update(u32 crc, const void *data, size_t len)
{
	SHASH_DESC_ON_STACK(desc, crc32_tfm);
	u32 *state = shash_desc_ctx(desc);

	desc->tfm = crc32_tfm;
	*state = crc;
	if (crypto_shash_update(desc, data, len))
		return crc32_le(crc, data, len);
	return *state;
}
#endif
