import { describe, expect, it } from '@jest/globals';
import { ToolWorkerTable } from './tool-worker-table.js';

const version = { workspace: 'default', name: 'weather', digest: 'a' };
const none = new Set<string>();
const toolsOf = (workers: number) => [{ name: 'weather', digest: 'a', workers }];
const change = (gateway: string, revision: number, workers: number) => ({
  gateway,
  revision,
  change: { workspace: 'default', tools: workers === 0 ? [] : toolsOf(workers) },
});

const createTable = () => {
  let asked = 0;
  const table = new ToolWorkerTable(() => asked++);
  return { table, asked: () => asked };
};

describe('the table of programs', () => {
  it('chooses the gateway with the fewest calls for each program', () => {
    const { table } = createTable();
    table.observe(change('one', 1, 1));
    table.observe(change('two', 1, 3));
    const chosen = Array.from({ length: 8 }, () => {
      const id = table.choose(version, none) ?? '';
      table.begin(id, () => undefined);
      return id;
    });
    expect(chosen.filter((id) => id === 'one')).toHaveLength(2);
    expect(table.choose(version, new Set(['two']))).toBe('one');
    expect(table.choose({ ...version, digest: 'b' }, none)).toBeUndefined();
    expect(table.choose({ ...version, workspace: 'other' }, none)).toBeUndefined();
  });

  it('asks for all programs when it lacks a revision', () => {
    const { table, asked } = createTable();
    table.observe(change('one', 1, 1));
    table.observe({ gateway: 'one', revision: 1 });
    expect(asked()).toBe(0);
    table.observe(change('one', 3, 0));
    expect([asked(), table.count(version)]).toEqual([1, 1]);
    table.observe({ gateway: 'one', revision: 3, all: [] });
    expect(table.count(version)).toBe(0);
  });

  it('forgets a silent gateway, and loses its calls', () => {
    const { table } = createTable();
    table.observe(change('one', 1, 1));
    let lost = 0;
    table.begin('one', () => lost++);
    const release = table.begin('one', () => lost++);
    release();
    for (let tick = 0; tick < 9; tick++) table.tick();
    expect([lost, table.count(version)]).toEqual([0, 1]);
    table.observe({ gateway: 'one', revision: 1 });
    for (let tick = 0; tick < 10; tick++) table.tick();
    expect([lost, table.count(version)]).toEqual([1, 0]);
    table.begin('one', () => lost++);
    expect(lost).toBe(2);
  });

  it('gives a gateway that stops no further call', () => {
    const { table } = createTable();
    table.observe(change('one', 1, 1));
    table.observe({ gateway: 'one', revision: 1, isStopping: true });
    expect(table.choose(version, none)).toBeUndefined();
  });
});
