import { describe, expect, it } from '@jest/globals';
import { agentStream } from '@antiphon/contracts/agent';
import { agentTreeDecider } from '@antiphon/agents-domain';
import { createMemoryEventStore } from '@antiphon/event-store/testing';
import { uuidIds } from '@antiphon/observability';
import { agentUuidOf } from '@antiphon/agent-log/derived-ids';
import { toNewEvent } from '@antiphon/agent-log/event-envelope';
import { AgentTrees } from './agent-trees.js';

const NOW = '2026-11-22T12:00:00.000Z';
const WORKSPACE = 'default';
const limits = { depth: 3, children: 100, size: 5 };

describe('two processes with one tree', () => {
  it('admit exactly its limit, each agent before its place in the tree', async () => {
    const store = createMemoryEventStore();
    const processes = [new AgentTrees({ store, ids: uuidIds }), new AgentTrees({ store, ids: uuidIds })];
    await processes[0]?.commit(WORKSPACE, 'root', (tree) => ({
      events: agentTreeDecider.decide({ type: 'Open', data: { rootId: 'root', limits }, now: NOW }, tree),
    }));
    const spawn = async (index: number) =>
      processes[index % 2]?.commit(WORKSPACE, 'root', (tree) => {
        const agentId = `a${index}`;
        const data = { agentId, parentId: 'root', whenFull: 'refuse' } as const;
        const ready = {
          type: 'AgentReady',
          schemaVersion: 1,
          data: { agentId, actor: 'k', reason: null, at: NOW },
        };
        return {
          events: agentTreeDecider.decide({ type: 'Admit', data, now: NOW }, tree),
          also: [
            {
              streamId: agentStream(agentUuidOf(WORKSPACE, agentId)),
              expectedVersion: 0,
              events: [toNewEvent(ready, uuidIds)],
            },
          ],
        };
      });
    const outcomes = await Promise.allSettled(Array.from({ length: 40 }, (_, index) => spawn(index)));
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(limits.size - 1);
    const log = await store.readLog({ after: 0, limit: 100 });
    expect(log.slice(2, 4).map(({ type }) => type)).toEqual(['AgentReady', 'TreeMemberAdmitted']);
    expect(log.filter(({ type }) => type === 'AgentReady')).toHaveLength(limits.size - 1);
  });
});
