import { describe, expect, it } from '@jest/globals';
import type { ChannelPeerEvent } from '@antiphon/contracts/agent';
import { specFor } from '@antiphon/testing';
import { peersDecider } from './peers.decider.js';
import type { PeerCommand } from './peers.decider.js';

const given = specFor(peersDecider);
const NOW = '2026-11-28T10:00:00.000Z';
const EXPIRED = '2026-11-28T09:59:59.000Z';
const LATER = '2026-11-28T11:00:00.000Z';
const common = { channel: 'telegram', by: 'local' };
const change = { ...common, at: NOW };
const schemaVersion = 1;

const created = (codeDigest = 'c1', expiresAt = LATER): ChannelPeerEvent => ({
  ...{ type: 'PairingCodeCreated', schemaVersion, data: { ...change, codeDigest, expiresAt } },
});
const paired = (peer = '4711', codeDigest: string | null = 'c1'): ChannelPeerEvent => ({
  ...{ type: 'PeerPaired', schemaVersion, data: { ...change, peer, codeDigest } },
});
const blocked = (peer = '4711'): ChannelPeerEvent => ({
  ...{ type: 'PeerBlocked', schemaVersion, data: { ...change, peer } },
});
const use = (peer = '4711', codeDigest = 'c1'): PeerCommand => ({
  ...{ type: 'UseCode', ...common, now: NOW, peer, codeDigest },
});

describe('the peers of a channel', () => {
  it('are paired by a code, which works once', () => {
    given([created()]).when(use()).then([paired()]);
    given([created(), paired()]).when(use('4712')).then([]);
    given([created('c1', EXPIRED)])
      .when(use())
      .then([]);
    given([]).when(use()).then([]);
  });

  it('are not paired by a code once they are blocked', () => {
    given([blocked(), created()]).when(use()).then([]);
    given([blocked(), created(), paired('4711', null)])
      .when({ type: 'Block', ...common, now: NOW, peer: '4711' })
      .then([blocked()]);
  });

  it('have a bounded number of open codes', () => {
    const many = Array.from({ length: 20 }, (_, n) => created(`c${n}`));
    const create: PeerCommand = {
      type: 'CreateCode',
      ...common,
      now: NOW,
      codeDigest: 'c',
      expiresAt: LATER,
    };
    given(many).when(create).thenRejects('CHANNEL.TOO_MANY_CODES');
    const old = Array.from({ length: 20 }, (_, n) => created(`c${n}`, EXPIRED));
    expect(
      peersDecider.decide(create, old.reduce(peersDecider.evolve, peersDecider.initialState())),
    ).toHaveLength(1);
  });
});
