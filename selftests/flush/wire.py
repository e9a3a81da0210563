#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Check FLUSH requests in a capture, and their answers (IBA volume 1, annex A19).

usage: wire.py FILE REQUESTER
"""

import os
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '..', 'protocol'), os.path.join(HERE, '..', 'wire')]
import roce  # noqa: E402
from wire import frames  # noqa: E402

GLOBAL, PERSISTENT = 1, 2
REGION = 1


def main():
    """Exit status 0 if all is well."""
    path, requester = sys.argv[1:]
    flushes, answers, naks, wrong = {}, {}, {}, []
    for frame in frames(path):
        p = roce.Packet(frame)
        if not p.icrc_ok:
            wrong.append(f'{p}: ICRC')
        if p.source == requester and p.opcode == roce.RC | roce.FLUSH:
            what, = struct.unpack('!I', p.feth)
            flushes[p.psn] = what & 15, what >> 4 & 3, p.dma_length
            if p.payload or what >> 6:
                wrong.append(f'{p}: payload, or reserved bits: {what:#x}')
        elif p.source != requester and p.psn in flushes:
            if p.operation == roce.READ_ONLY:
                answers[p.psn] = p
            elif p.is_nak and p.syndrome in (roce.NAK_ACCESS, roce.NAK_INVALID):
                naks[p.psn] = p.syndrome
            else:
                wrong.append(f'{p} is no answer to a FLUSH')
    wrong += [f'{p}: not positive, or with payload' for p in answers.values()
              if p.payload or p.syndrome >> 5]
    wrong += [f'FLUSH {psn:#x} got no answer' for psn in flushes
              if psn not in answers and psn not in naks]
    kinds = {kind[:2] for kind in flushes.values()}
    wanted = {(GLOBAL, 0), (GLOBAL, REGION), (PERSISTENT, 0), (GLOBAL | PERSISTENT, 0)}
    if not wanted <= kinds:
        wrong.append(f'(type, level): {kinds}')
    if len(answers) < 7 or len(naks) < 5:
        wrong.append(f'{len(answers)} answers, {len(naks)} NAKs')
    if {length for _, _, length in flushes.values()} != {0, 16384, 65536, 12345678}:
        wrong.append(f'lengths: {flushes}')
    print('\n'.join(wrong))
    return bool(wrong)


if __name__ == '__main__':
    sys.exit(main())
