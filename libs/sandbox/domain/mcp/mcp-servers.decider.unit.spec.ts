import { describe, expect, it } from '@jest/globals';
import type { McpEvent, McpTool } from '@antiphon/contracts/sandbox';
import { specFor } from '@antiphon/testing';
import { MAX_MCP_SERVERS, mcpServersDecider } from './mcp-servers.decider.js';
import type { McpCommand } from './mcp-servers.decider.js';

const given = specFor(mcpServersDecider);
const now = '2026-11-28T00:00:00.000Z';
const actor = 'token';
const server = 'docs';
const url = 'https://mcp.example.com/mcp';
const hints = { isReadOnly: false, isIdempotent: false };

const tool = (name: string, version = '1', description = `${name} ${version}`): McpTool => ({
  ...{ tool: name, digest: version.repeat(64), description, inputSchema: { type: 'object' }, hints },
});
const event = (type: McpEvent['type'], data: object): McpEvent =>
  ({ type, schemaVersion: 1, data: { server, at: now, ...data } }) as McpEvent;
const added = event('McpServerAdded', { url, actor });
const pinned = (...tools: McpTool[]) => event('McpToolsPinned', { tools, features: [] });
const changed = (tools: McpTool[], removed: string[] = []) =>
  event('McpToolsChanged', { tools, removed, features: [] });
const approved = (name: string, version: string) =>
  event('McpChangeApproved', { tools: [{ tool: name, digest: version.repeat(64) }], actor });
const add = (tools: McpTool[], at = url): McpCommand => ({
  ...{ type: 'Add', server, now, actor, url: at, tools, features: [] },
});
const observe = (...tools: McpTool[]): McpCommand => ({ type: 'Observe', server, now, tools, features: [] });
const approve = (name: string, version: string): McpCommand => ({
  ...{ type: 'Approve', server, now, actor, tools: [{ tool: name, digest: version.repeat(64) }] },
});

describe('the MCP servers of a workspace', () => {
  it('pin the tools of a server that is added', () =>
    given([])
      .when(add([tool('a')]))
      .then([added, pinned(tool('a'))]));

  it('take a repeat as a look at the tools, and refuse another URL', () => {
    given([added, pinned(tool('a'))])
      .when(add([tool('a')]))
      .then([]);
    given([added, pinned(tool('a'))])
      .when(add([tool('a')], `${url}2`))
      .thenRejects('MCP.EXISTS');
  });

  it('are bounded', () => {
    const many = Array.from({ length: MAX_MCP_SERVERS }, (_, n) =>
      event('McpServerAdded', { server: `s${n}`, url, actor }),
    );
    given(many).when(add([])).thenRejects('MCP.LIMIT');
  });

  it('pin the first list of a server of the configuration', () =>
    given([])
      .when(observe(tool('a')))
      .then([pinned(tool('a'))]));

  it('record a changed, a new and a removed tool once', () => {
    const before = [added, pinned(tool('a'), tool('b'))];
    const change = changed([tool('a', '2'), tool('c')], ['b']);
    given(before)
      .when(observe(tool('a', '2'), tool('c')))
      .then([change]);
    given([...before, change])
      .when(observe(tool('a', '2'), tool('c')))
      .then([]);
  });

  it('record that a change was taken back, which needs no approval', () => {
    const before = [added, pinned(tool('a')), changed([tool('a', '2')])];
    const back = changed([tool('a')]);
    given(before)
      .when(observe(tool('a')))
      .then([back]);
    given([...before, back])
      .when(approve('a', '2'))
      .thenRejects('MCP.CHANGED_AGAIN');
  });

  it('pin the approved digest alone', () => {
    const before = [added, pinned(tool('a')), changed([tool('a', '2')])];
    given(before)
      .when(approve('a', '2'))
      .then([approved('a', '2')]);
    given(before).when(approve('a', '3')).thenRejects('MCP.CHANGED_AGAIN');
    given([...before, approved('a', '2')])
      .when(approve('a', '2'))
      .then([]);
    given([...before, approved('a', '2')])
      .when(observe(tool('a', '2')))
      .then([]);
    given([]).when(approve('a', '2')).thenRejects('MCP.NOT_FOUND');
  });

  it('forget the pins of a removed server', () => {
    const remove: McpCommand = { type: 'Remove', server, now, actor };
    given([]).when(remove).then([]);
    const removed = event('McpServerRemoved', { actor });
    given([added, pinned(tool('a'))])
      .when(remove)
      .then([removed]);
    given([added, pinned(tool('a')), removed])
      .when(add([tool('a', '2')]))
      .then([added, pinned(tool('a', '2'))]);
  });

  it('split many tools into events that the log takes', () => {
    const tools = Array.from({ length: 512 }, (_, n) => tool(`t${n}`, '1', 'x'.repeat(3_900)));
    const events = mcpServersDecider.decide(add(tools), mcpServersDecider.initialState());
    for (const one of events) expect(JSON.stringify(one).length).toBeLessThan(256 * 1024);
    const state = events.reduce(
      (before, one) => mcpServersDecider.evolve(before, one),
      mcpServersDecider.initialState(),
    );
    expect(state.get(server)?.pinned.size).toBe(512);
  });
});
