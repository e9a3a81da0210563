// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The performance management agent (IBA volume 1, 16.1): the port's counters, in the
 * units that the specification has.  The core shows them in sysfs, ports/1/counters,
 * by asking here; a peer may ask by a management datagram.
 */
#include <rdma/ib_pma.h>
#include "device.h"
#include "pma.h"

#define SROCE_PMA_STATUS_METHOD		cpu_to_be16(0x0008)	/* 13.4.7, method not supported */
#define SROCE_PMA_STATUS_ATTRIBUTE	cpu_to_be16(0x000c)	/* nor is attribute and method */

/* Data is counted in units of four octets, 16.1.3.5 */
static u64 sroce_pma_data(const struct sroce_dev *dev, enum sroce_counter bytes)
{
	return sroce_counter_sum(dev, bytes) / 4;
}

static u64 sroce_pma_rcv_errors(const struct sroce_dev *dev)
{
	return sroce_counter_sum(dev, SROCE_CNT_ICRC_ERRORS) +
	       sroce_counter_sum(dev, SROCE_CNT_RCV_MALFORMED);
}

static u64 sroce_pma_discards(const struct sroce_dev *dev)
{
	return sroce_counter_sum(dev, SROCE_CNT_SEND_DROPPED) +
	       sroce_counter_sum(dev, SROCE_CNT_NO_ROUTE);
}

static void sroce_pma_class_port_info(void *to)
{
	struct ib_class_port_info *info = to;

	info->base_version = 1;
	info->class_version = 1;
	info->capability_mask = IB_PMA_CLASS_CAP_EXT_WIDTH;
}

/* These stop at their largest value, 16.1.3.5 */
#define sroce_pma_cap(value, type)	((type)min_t(u64, value, (type)~0))

static void sroce_pma_counters(const struct sroce_dev *dev, struct ib_pma_portcounters *c)
{
	u64 xmit_packets = sroce_counter_sum(dev, SROCE_CNT_SENT_PKTS);
	u64 rcv_packets = sroce_counter_sum(dev, SROCE_CNT_RCVD_PKTS);
	u64 bad_pkey = sroce_counter_sum(dev, SROCE_CNT_RCV_BAD_PKEY);
	u64 downed = sroce_counter_sum(dev, SROCE_CNT_LINK_DOWNED);

	c->link_downed_counter = sroce_pma_cap(downed, u8);
	c->port_rcv_errors = cpu_to_be16(sroce_pma_cap(sroce_pma_rcv_errors(dev), u16));
	c->port_xmit_discards = cpu_to_be16(sroce_pma_cap(sroce_pma_discards(dev), u16));
	c->port_rcv_constraint_errors = sroce_pma_cap(bad_pkey, u8);
	c->port_xmit_data =
		cpu_to_be32(sroce_pma_cap(sroce_pma_data(dev, SROCE_CNT_SENT_BYTES), u32));
	c->port_rcv_data =
		cpu_to_be32(sroce_pma_cap(sroce_pma_data(dev, SROCE_CNT_RCVD_BYTES), u32));
	c->port_xmit_packets = cpu_to_be32(sroce_pma_cap(xmit_packets, u32));
	c->port_rcv_packets = cpu_to_be32(sroce_pma_cap(rcv_packets, u32));
}

static void sroce_pma_counters_ext(const struct sroce_dev *dev, struct ib_pma_portcounters_ext *c)
{
	u64 xmit_multicast = sroce_counter_sum(dev, SROCE_CNT_SENT_MULTICAST);
	u64 rcv_multicast = sroce_counter_sum(dev, SROCE_CNT_RCVD_MULTICAST);
	u64 xmit = sroce_counter_sum(dev, SROCE_CNT_SENT_PKTS);
	u64 rcv = sroce_counter_sum(dev, SROCE_CNT_RCVD_PKTS);

	c->port_xmit_data = cpu_to_be64(sroce_pma_data(dev, SROCE_CNT_SENT_BYTES));
	c->port_rcv_data = cpu_to_be64(sroce_pma_data(dev, SROCE_CNT_RCVD_BYTES));
	c->port_xmit_packets = cpu_to_be64(xmit);
	c->port_rcv_packets = cpu_to_be64(rcv);
	c->port_unicast_xmit_packets = cpu_to_be64(xmit - xmit_multicast);
	c->port_unicast_rcv_packets = cpu_to_be64(rcv - rcv_multicast);
	c->port_multicast_xmit_packets = cpu_to_be64(xmit_multicast);
	c->port_multicast_rcv_packets = cpu_to_be64(rcv_multicast);
}

/* The answer to a Get, behind the reserved bytes; its status */
static __be16 sroce_pma_get(const struct sroce_dev *dev, const struct ib_mad *in, void *to)
{
	const struct ib_pma_portcounters *asked = (const void *)in->data + 40;

	if (in->mad_hdr.attr_id == IB_PMA_CLASS_PORT_INFO) {
		sroce_pma_class_port_info(to);
		return 0;
	}
	if (asked->port_select != SROCE_PORT && asked->port_select != 0xff)
		return SROCE_PMA_STATUS_ATTRIBUTE;
	if (in->mad_hdr.attr_id == IB_PMA_PORT_COUNTERS)
		sroce_pma_counters(dev, to);
	else if (in->mad_hdr.attr_id == IB_PMA_PORT_COUNTERS_EXT)
		sroce_pma_counters_ext(dev, to);
	else
		return SROCE_PMA_STATUS_ATTRIBUTE;
	((struct ib_pma_portcounters *)to)->port_select = asked->port_select;
	return 0;
}

/**
 * sroce_process_mad - ib_device_ops.process_mad: requests that the port answers itself
 * @ibdev: device
 * @flags: nothing that matters here
 * @port: port number; there is one
 * @wc: how the datagram came, or NULL
 * @grh: likewise
 * @in: the datagram
 * @out: where to put the answer
 * @out_size: the size of it; is that of every management datagram
 * @out_pkey_index: stays 0
 *
 * Counters are read only: hardware's are reset by those who administer it.
 * Context: process.  Return: IB_MAD_RESULT_SUCCESS, with IB_MAD_RESULT_REPLY when there
 * is an answer.
 */
int sroce_process_mad(struct ib_device *ibdev, int flags, u32 port, const struct ib_wc *wc,
		      const struct ib_grh *grh, const struct ib_mad *in, struct ib_mad *out,
		      size_t *out_size, u16 *out_pkey_index)
{
	const struct sroce_dev *dev = to_sdev(ibdev);

	if (in->mad_hdr.mgmt_class != IB_MGMT_CLASS_PERF_MGMT || port != SROCE_PORT)
		return IB_MAD_RESULT_SUCCESS;
	if (in->mad_hdr.method != IB_MGMT_METHOD_GET && in->mad_hdr.method != IB_MGMT_METHOD_SET)
		return IB_MAD_RESULT_SUCCESS;	/* somebody's answer */
	memset(out, 0, sizeof(*out));
	out->mad_hdr = in->mad_hdr;
	out->mad_hdr.method = IB_MGMT_METHOD_GET_RESP;
	if (in->mad_hdr.method == IB_MGMT_METHOD_SET)
		out->mad_hdr.status = SROCE_PMA_STATUS_METHOD;
	else
		out->mad_hdr.status = sroce_pma_get(dev, in, out->data + 40);
	return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY;
}
