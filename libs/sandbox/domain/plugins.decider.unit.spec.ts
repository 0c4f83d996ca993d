import { describe, it } from '@jest/globals';
import type { PluginEvent } from '@antiphon/contracts/sandbox';
import { specFor } from '@antiphon/testing';
import { MAX_ADDED_PLUGINS, pluginsDecider } from './plugins.decider.js';
import type { AddPlugin } from './plugins.decider.js';

const given = specFor(pluginsDecider);
const at = '2026-11-28T10:00:00.000Z';
const limits = { capabilities: ['log'], timeoutMs: 5_000, memoryMb: 16 };
const module = { digest: 'a'.repeat(64), bytes: 100, ...limits };
const change = (name = 'weather') => ({ name, actor: 'key/a', at });

const added = (version = 1, more: Partial<typeof module> = {}, name = 'weather'): PluginEvent => ({
  ...{ type: 'PluginAdded', schemaVersion: 1 },
  data: { ...change(name), version, ...module, ...more },
});
const versionAdded = (version: number, more: Partial<typeof module> = {}): PluginEvent => ({
  ...{ type: 'PluginVersionAdded', schemaVersion: 1 },
  data: { ...change(), version, ...module, ...more },
});
const fact = (type: 'PluginRemoved' | 'PluginAllowed' | 'PluginDenied', name = 'weather'): PluginEvent => ({
  ...{ type, schemaVersion: 1, data: change(name) },
});
const add = (more: Partial<AddPlugin> = {}): AddPlugin => ({
  ...{ type: 'Add', name: 'weather', actor: 'key/a', now: at, ...module },
  ...more,
});
const command = (type: 'Remove' | 'Allow' | 'Deny', name = 'weather') =>
  ({ type, name, actor: 'key/a', now: at }) as const;
const names = Array.from({ length: MAX_ADDED_PLUGINS }, (_, n) => `p${n}`);
const full = names.map((name) => added(1, {}, name));
const fullyDenied = names.map((name) => fact('PluginDenied', name));

describe('the plug-ins of a workspace', () => {
  it('have a first version once one is added', () => given([]).when(add()).then([added()]));

  it('get no fact for the same module with the same grants and limits', () =>
    given([added()]).when(add()).thenNothing());

  it.each([
    ['other bytes', { digest: 'b'.repeat(64), bytes: 200 }],
    ['other capabilities', { capabilities: ['log', 'clock'] }],
    ['another timeout', { timeoutMs: 1_000 }],
    ['other memory', { memoryMb: 32 }],
  ])('get a version by %s', (_what, more) =>
    given([added()])
      .when(add(more))
      .then([versionAdded(2, more)]),
  );

  it('return to an earlier module by a version of its own', () =>
    given([added(), versionAdded(2, { bytes: 200, digest: 'b' })])
      .when(add())
      .then([versionAdded(3)]));

  it('are removed once', () =>
    given([added()])
      .when(command('Remove'))
      .then([fact('PluginRemoved')]));

  it.each([
    ['never added', []],
    ['removed before', [added(), fact('PluginRemoved')]],
  ])('have no fact for the removal of one that was %s', (_what, events) =>
    given(events).when(command('Remove')).thenNothing(),
  );

  it('continue the versions of a removed one that is added again', () =>
    given([added(), fact('PluginRemoved')])
      .when(add())
      .then([added(2)]));

  it('are limited in number', () => given(full).when(add()).thenRejects('PLUGIN.LIMIT'));

  it('take a version at their limit', () =>
    given([...full.slice(1), added()])
      .when(add({ memoryMb: 32 }))
      .then([versionAdded(2, { memoryMb: 32 })]));

  it('make room by a removal', () =>
    given([...full, fact('PluginRemoved', 'p0')])
      .when(add())
      .then([added()]));

  it('are denied once, also one that was not added', () => {
    given([])
      .when(command('Deny'))
      .then([fact('PluginDenied')]);
    given([fact('PluginDenied')])
      .when(command('Deny'))
      .thenNothing();
  });

  it('are allowed again only after they were denied', () => {
    given([fact('PluginDenied')])
      .when(command('Allow'))
      .then([fact('PluginAllowed')]);
    given([added()]).when(command('Allow')).thenNothing();
    given([fact('PluginDenied'), fact('PluginAllowed')])
      .when(command('Allow'))
      .thenNothing();
  });

  it('stay denied after a removal', () =>
    given([added(), fact('PluginDenied'), fact('PluginRemoved')])
      .when(command('Deny'))
      .thenNothing());

  it('have a limit of denied names', () =>
    given(fullyDenied).when(command('Deny')).thenRejects('PLUGIN.LIMIT'));
});
