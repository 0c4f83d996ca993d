import { afterAll, describe, expect, it } from '@jest/globals';
import { initialPlan, toStepText } from '@antiphon/orchestration-domain';
import { renderAttached } from '@antiphon/conversation-domain';
import { normalizePath } from '@antiphon/files-domain';
import type { PlanCommand } from '@antiphon/orchestration-domain';
import { nestsDeeperThan, toStorable } from '@antiphon/kernel';
import { HOSTILE_TIMEOUT_MS, findHolds, sampleHostileTexts } from '@antiphon/testing/hostile-text';
import type { HostileText, LoopReader } from '@antiphon/testing/hostile-text';
import { numberLines } from '@antiphon/native-tools-features/tools/read-lines';
import { builtInReply } from '@antiphon/providers-features/scripted/built-in-reply';
import { createRedactor } from '@antiphon/observability';
import { readErrorBody } from '@antiphon/providers-features/transport/error-text';
import { createEventParser } from '@antiphon/providers-features/transport/response-reader';
import { TEXT_DEADLINE_MS, textWork } from '@antiphon/service-host/worker-pool';
import { fileJobs } from '@antiphon/files-features/text-work';
import { conversationJobs } from '@antiphon/conversation-features/text-work';
import { toolJobs } from '@antiphon/native-tools-features/text-work';
import { workJobs } from '@antiphon/orchestration-features/text-work';
import { splitRole } from '@antiphon/conversation-features/turns/role-text';
import { letTimePass } from '@antiphon/testing/waits';

const MIB = 1024 * 1024;
const SAMPLE = 60;
/** Texts of the sample that also go through the threads: one of these takes some 100 ms. */
const SAMPLED_JOBS = 12;
/** Time of a thread to start and to end on a busy machine, ms. */
const SLACK_MS = 10_000;
/** Number of pieces of work on one text, which take turns. */
const JOBS = 7;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Readers of text of members, agents, tools or providers on the loop, with their bounds. */
const READERS: readonly LoopReader[] = [
  { name: 'nestsDeeperThan', longest: 8 * MIB, read: (text) => nestsDeeperThan(text) },
  { name: 'toStorable', longest: MIB, read: toStorable },
  { name: 'normalizePath', longest: 8 * MIB, read: normalizePath },
  { name: 'splitRole', longest: MIB, read: splitRole },
  { name: 'toStepText', longest: 60_000, read: toStepText },
  { name: 'readErrorBody', longest: 64 * 1024, read: readErrorBody },
  { name: 'redact', longest: 64 * 1024, read: createRedactor(['a-secret-of-a-provider']) },
  { name: 'JSON of an event', longest: MIB, read: (text) => JSON.parse(text) as unknown },
  {
    name: 'events of a chunk',
    longest: 64 * 1024,
    read: (text) => createEventParser(() => undefined)(encoder.encode(`${text}\n\n`)),
  },
  {
    name: 'attached file',
    longest: 4 * MIB,
    read: (text) =>
      renderAttached([{ path: 'a.md', digest: 'd', size: text.length, text, isPart: true }], 100_000),
  },
  {
    name: 'reply of the scripted provider',
    longest: 64 * 1024,
    read: (text) =>
      builtInReply({ user: text, step: 1, results: [] } as unknown as Parameters<typeof builtInReply>[0]),
  },
];

const PATHS = Array.from({ length: 300 }, (_, n) => `src/${'a'.repeat(n % 90)}/b${n}/file ${n}.ts`);
const EXPRESSIONS = ['(.{1,30}){1,30}[yz]{5}', '(a|aa)+$', '\\s+x', '(?:[^x]*y){3}'];

const createPlan = (file: string): PlanCommand => ({
  type: 'CreatePlan',
  data: { planId: 'p', treeId: 't', path: 'a.plan.md', file, kind: 'person' },
  by: { actor: 'alice', agentId: null },
  now: '2026-11-26T00:00:00.000Z',
});

/** Starts the work of the threads on one text. Each ends with a result or a refusal. */
const startJobs = ({ text }: HostileText, index: number): readonly Promise<unknown>[] => {
  const job = { owner: 'hostile', deadlineMs: TEXT_DEADLINE_MS, mostWaiting: 100 };
  const bytes = encoder.encode(text);
  const half = text.length >> 1;
  const changed = encoder.encode(`${text.slice(0, half)}x\n${text.slice(half).replaceAll('\n', ' \n')}`);
  const old = `${text.slice(0, 100_000)}y${text.slice(0, 100_000)}`;
  const query = {
    query: EXPRESSIONS[index % 4] ?? '',
    regex: index % 3 > 0,
    ignoreCase: index % 2 > 0,
    limit: 100,
  };
  const files = [['a.txt', bytes.length]] as const;
  return [
    fileJobs.run({ ...job, name: 'describeChange', input: [bytes, changed] }),
    toolJobs.run({ ...job, name: 'editFile', input: { path: 'a', bytes, edits: [{ old, new: 'z' }] } }),
    workJobs.run({ ...job, name: 'decidePlan', input: [createPlan(text), initialPlan()] }),
    toolJobs.run({
      ...{ ...job, name: 'findIgnored' },
      input: { files: [['', bytes.slice(0, 100_000)]], paths: PATHS, root: '' },
    }),
    toolJobs.run({
      ...job,
      name: 'searchBatch',
      deadlineMs: 2_000,
      input: { query, bytes, files, forMs: 1_000 },
    }),
    workJobs.run({ ...job, name: 'parseDefinition', input: text.slice(0, 256 * 1024) }),
    conversationJobs.run({
      ...job,
      name: 'parseRoleFile',
      input: ['a', encoder.encode(`---\n${text.slice(0, 60_000)}`)],
    }),
  ];
};

const isRefusal = ({ kind }: { readonly kind?: string }): boolean =>
  ['invalid', 'not_found', 'rejected', 'conflict'].includes(kind ?? '');

/** Resolves with what is wrong about the end of some work; null for a result or a refusal in time. */
const faultOf = async (work: Promise<unknown>): Promise<string | null> => {
  const from = performance.now();
  const error = await work.then(
    () => null,
    (reason: Error & { kind?: string }) => reason,
  );
  const ms = Math.round(performance.now() - from);
  if (ms > JOBS * (TEXT_DEADLINE_MS + SLACK_MS)) return `ended after ${ms} ms`;
  return error === null || isRefusal(error) ? null : `${String(error)} ${String(error.cause)}`;
};

/**
 * Work of another tenant, one after another until it is told to stop. Resolves with the times by
 * which its loop was late. Time in which another thread or program had the processor is left out.
 */
const pingAsOther = async (isDone: () => boolean): Promise<readonly number[]> => {
  const times: number[] = [];
  while (!isDone()) {
    const from = performance.now();
    const processor = process.threadCpuUsage();
    await letTimePass(5);
    const { user, system } = process.threadCpuUsage(processor);
    times.push(Math.min(performance.now() - from - 5, (user + system) / 1_000));
    const input = { path: 'a', bytes: encoder.encode('one two'), edits: [{ old: 'two', new: '2' }] };
    const edited = await toolJobs.run({
      name: 'editFile',
      input,
      owner: 'other',
      deadlineMs: TEXT_DEADLINE_MS,
    });
    if (decoder.decode(edited) !== 'one 2') throw new Error('the work of the other tenant is wrong');
  }
  return times.sort((a, b) => a - b);
};
const p99 = (times: readonly number[]): number => times[Math.floor(times.length * 0.99)] ?? 0;

describe('hostile text', () => {
  afterAll(() => textWork.close());

  it(
    'holds the event loop no longer than 50 ms in any reader',
    () => expect(findHolds(READERS, sampleHostileTexts(SAMPLE))).toEqual([]),
    HOSTILE_TIMEOUT_MS,
  );

  it(
    'holds the event loop no longer than 50 ms where a tool reads lines of a file',
    () => {
      const found: string[] = [];
      for (const { text, recipe } of sampleHostileTexts(SAMPLE)) {
        const bytes = encoder.encode(text).subarray(0, 8 * MIB);
        const read = () => numberLines(bytes, 1, 1_000);
        found.push(...findHolds([{ name: 'numberLines', longest: 1, read }], [{ text: '', recipe }]));
      }
      expect(found).toEqual([]);
    },
    HOSTILE_TIMEOUT_MS,
  );

  it(
    'ends in each thread by its deadline, and leaves other tenants their time',
    async () => {
      let isDone = false;
      let isQuiet = false;
      const quiet = pingAsOther(() => isQuiet);
      await letTimePass(1_000);
      isQuiet = true;
      const before = p99(await quiet);
      const other = pingAsOther(() => isDone);
      const faults: string[] = [];
      let index = 0;
      for (const text of sampleHostileTexts(SAMPLED_JOBS))
        for (const fault of await Promise.all(startJobs(text, index++).map(faultOf)))
          if (fault !== null) faults.push(`${fault} of ${text.recipe}`);
      isDone = true;
      expect(faults).toEqual([]);
      expect(p99(await other)).toBeLessThanOrEqual(100 + 3 * before);
    },
    HOSTILE_TIMEOUT_MS,
  );
});
